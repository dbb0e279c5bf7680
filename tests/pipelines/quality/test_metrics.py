import math
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.catalog import PROFILES, find_profile
from pipelines.quality.words import MeasuredText, Splitters

with warnings.catch_warnings():  # jieba has invalid escapes
    warnings.simplefilter("ignore")
    from tests.pipelines.quality.oracle import ORACLES, c4_page, chinese_words, sentences

from pipelines.quality.punctuation import PUNCTUATION, TERMINAL, chinese_units
from tests.pipelines.quality.texts import CHINESE_PROSE, PROSE, TEXTS

SPLITTERS = Splitters()


def measured(name: str, text: str, language: str = "") -> dict[str, float]:
    profile = find_profile(name)
    language = language or ORACLES[profile.name][0]
    _, values = profile.measure(MeasuredText(text, language, splitters=SPLITTERS), profile.defaults)
    return dict(zip(profile.metrics, values, strict=True))


def same(given: dict[str, float], wanted: list[float]) -> bool:
    return list(given.values()) == pytest.approx(wanted, nan_ok=True, abs=1e-12)


def test_every_profile_without_spacy_is_looked_at() -> None:
    needs_spacy = {each.name for each in PROFILES if each.words == "datatrove"}
    rest = {"fineweb2-zh@sentences", "fineweb2-zh@datatrove"}
    assert set(ORACLES) == {each.name for each in PROFILES} - needs_spacy | rest


@pytest.mark.parametrize("name", ORACLES)
def test_texts_measure_as_defined(name: str) -> None:
    language, oracle = ORACLES[name]
    assert len(TEXTS) > 40
    for text in TEXTS:
        words = chinese_words(text) if language == "zh" else text.split()
        assert same(measured(name, text), oracle(text, words)), text


awkward = st.text(st.sampled_from("ab c.\n…-•#。！”；是的 1"), max_size=60)


@given(awkward)
def test_any_text_measures_as_defined(text: str) -> None:
    for name, (language, oracle) in ORACLES.items():
        words = chinese_words(text) if language == "zh" else text.split()
        assert same(measured(name, text), oracle(text, words)), name


@given(st.lists(st.sampled_from(["a", "b", "ab", "ba", "c"]), max_size=40))
def test_words_that_come_again_measure_as_defined(words: list[str]) -> None:
    # Few words make n-grams that overlap, and that spell the same when joined.
    text = " ".join(words)
    for name in ("gopher-repetition@paper", "fineweb2-zh@datatrove"):
        language, oracle = ORACLES[name]
        found = chinese_words(text) if language == "zh" else words
        assert same(measured(name, text), oracle(text, found)), name


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("glm", "a" * 100, {"chars": 100}),
        ("gopher", PROSE, {"words": 31, "hashes": 0, "alphabetic_words": 1, "stop_words": 5}),
        ("gopher", "a bb ccc", {"word_length": 2, "stop_words": 0}),
        ("gopher", "# # a b", {"hashes": 0.5, "alphabetic_words": 0.5}),
        # four dots hold one "..."
        ("gopher", "so it goes… and goes... and goes.... on", {"ellipses": 3 / 8}),
        ("gopher", "- one\n- two\n- three\nfour", {"bullet_lines": 0.75}),
        ("gopher", "on...\ntoo…  \nends.", {"ellipsis_lines": 2 / 3}),
        ("gopher", "The the THE be", {"stop_words": 2}),
        ("gopher", "", {"words": 0, "word_length": math.nan, "bullet_lines": math.nan}),
        # 6 words of one letter thrice: 18 letters, commonest pair 3 times 2 of them
        ("gopher-repetition", "a b c d e f " * 3, {"top_2gram": 6 / 18, "dup_5gram": 1}),
        # "b b" comes five times in six words; overlaps count in the commonest pair
        ("gopher-repetition", "b b b b b b", {"top_2gram": 10 / 6, "dup_5gram": 1}),
        ("gopher-repetition", "x\n\nx\ny", {"dup_paragraph": 0, "dup_line": 1 / 3}),
        ("gopher-repetition", "abc\n\nabc", {"dup_paragraph": 0.5, "dup_paragraph_chars": 0.5}),
        ("gopher-repetition", "a b", {"top_2gram": 0, "top_3gram": 0, "dup_10gram": 0}),
        ("fineweb", "One.\nTwo\n\n  \nThree!", {"punctuated_lines": 2 / 3, "short_lines": 1}),
        ("fineweb", "same\nsame\nother", {"dup_line_chars": 4 / 13, "newlines": 2 / 3}),
        ("fineweb", "end. ", {"punctuated_lines": 0}),
        ("chinese-web", "一二三四五六七八九十", {"chars": 10, "line_chars": 10, "han": 1}),
        ("chinese-web", "一二。三四！五", {"line_chars": 7 / 3, "newlines": 0}),
        ("chinese-web", "一二。\n三四！五", {"line_chars": 4, "newlines": 1 / 5}),
        ("chinese-web", "有 3.5 或 12 a", {"numbers": 2 / 3}),
        ("chinese-web", "3.5", {"numbers": math.nan, "newlines": math.nan}),
        # 24 characters make 12 runs of 13 of which none comes twice; 26 make 14, 2 of them equal
        ("chinese-web", "一二三四五六七八九十甲乙" * 2, {"repeated_13grams": 0}),
        ("chinese-web", "一二三四五六七八九十甲乙丙" * 2, {"repeated_13grams": 2 / 14}),
        ("fineweb2-zh", "是。是。是。好！", {"dup_line": 0.5, "punctuated_lines": 1}),
        ("fineweb2-zh@datatrove", "是。是。是。好！", {"dup_line": 0, "punctuated_lines": 1}),
        ("fineweb2-zh", "好。真的", {"punctuated_lines": 0.5}),
        ("fineweb2-zh@datatrove", "好。真的", {"punctuated_lines": 0}),
        ("fineweb2-zh", "他说：“好；”", {"punctuated_lines": 1}),
        ("fineweb2-zh@datatrove", "他说：“好；”", {"punctuated_lines": 0}),
        ("fineweb2-zh", "的的", {"stop_words": 1}),
        # a pair that comes once is still the commonest, with the space between its words
        ("fineweb2-zh", "你好，世界", {"top_2gram": 4 / 5, "words": 2, "alphabetic_words": 2 / 3}),
    ],
)  # fmt: skip
def test_by_hand(name: str, text: str, wanted: dict[str, float]) -> None:
    found = measured(name, text)
    assert {key: found[key] for key in wanted} == pytest.approx(wanted, nan_ok=True)


def test_lines_that_c4_takes_out() -> None:
    profile = find_profile("c4")
    for text in TEXTS:
        page, _ = profile.measure(MeasuredText(text, "en", splitters=SPLITTERS), profile.defaults)
        assert page.text == c4_page(text)[1]
    whole = MeasuredText("A line of prose that stays.", "en", splitters=SPLITTERS)
    assert profile.measure(whole, profile.defaults)[0] is whole


@pytest.mark.parametrize(
    ("bound", "text", "left"),
    [
        ({}, "Only four words here.\nFive words are here now.", "Five words are here now."),
        ({"min_line_words": 4}, "Only four words here.", "Only four words here."),
        ({"terminal_punctuation": 0}, "No mark ends this line", "No mark ends this line"),
        ({"terminal_punctuation": math.nan}, "No mark ends this line", "No mark ends this line"),
        ({"max_word_chars": 6}, "Abcdefg hij kl mn op.\nAbc def ghi jk lm.", "Abc def ghi jk lm."),
        ({"max_word_chars": math.nan}, f"a b c d {'e' * 2000}.", f"a b c d {'e' * 2000}."),
    ],
)
def test_line_thresholds_of_c4(bound: dict[str, float], text: str, left: str) -> None:
    profile = find_profile("c4")
    bounds = {**profile.defaults, **bound}
    assert profile.measure(MeasuredText(text, "en", splitters=SPLITTERS), bounds)[0].text == left


@given(st.text(st.sampled_from("ab。！？…；”’)「」 ")))
def test_units_lose_nothing(text: str) -> None:
    assert "".join(chinese_units(text)).replace(" ", "") == text.replace(" ", "")
    assert chinese_units(text) == sentences(text)


def test_one_line_and_more() -> None:
    # Two lines or more: FineWeb-2's filters as they are.
    several = [text for text in TEXTS if "\n" in text.strip()]
    assert len(several) > 10
    for text in several:
        ours, theirs = measured("fineweb2-zh", text), measured("fineweb2-zh@datatrove", text)
        assert ours == pytest.approx(theirs, nan_ok=True)
    assert measured("fineweb2-zh", CHINESE_PROSE)["dup_line"] == 0
    assert measured("fineweb2-zh", CHINESE_PROSE * 2)["dup_line"] == 0.5


def test_stop_words_by_language() -> None:
    assert measured("gopher", "the be", "en")["stop_words"] == 2
    assert measured("gopher", "我的年", "zh")["stop_words"] == 2
    assert math.isnan(measured("gopher", "le la et", "fr")["stop_words"])


def test_a_short_line_is_what_its_threshold_says() -> None:
    profile = find_profile("fineweb")
    text = MeasuredText("five5\nsixsix", "en", splitters=SPLITTERS)
    for most, wanted in ((4, 0), (5, 0.5), (6, 1)):
        _, values = profile.measure(text, {**profile.defaults, "short_line_chars": most})
        assert values[1] == wanted


def test_sets_of_characters() -> None:
    assert set("!.?。！？") < TERMINAL
    assert not TERMINAL & set(",;:、，；…”")
    assert set("#…“”、-") < set(PUNCTUATION)
    assert [c for c in PUNCTUATION if c.isalnum()] == ["１"]
