"""Every profile measures as its definition says, and by native loops the same."""

import itertools
import sys
import warnings
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality import Judgement, Quality
from tests.pipelines.native import loaded
from tests.pipelines.quality.texts import EDGES, TEXTS

pytestmark = pytest.mark.slow

with warnings.catch_warnings():  # jieba has invalid escapes
    warnings.simplefilter("ignore")
    from tests.pipelines.quality.oracle import ORACLES, c4_page, chinese_words

C4_BOUNDS = ("c4.max_word_chars=3", "c4.terminal_punctuation=0", "c4.min_line_words=3")
CHOICES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    *((language, name, ()) for name, (language, _) in ORACLES.items()),
    ("fr", "gopher-repetition", ()),
    ("fr", "gopher", ()),
    ("zh", "gopher", ()),
    ("zh", "fineweb", ("fineweb.short_line_chars=2",)),
    ("zh", "gopher-repetition@datatrove", ()),
    ("zh", "fineweb@code", ("fineweb.short_line_chars=off",)),
    ("en", "c4", C4_BOUNDS),
    ("fr", "c4", ("c4.max_word_chars=off", "c4.terminal_punctuation=off")),
    ("fr", "c4", ("c4.min_line_words=off",)),
)
BY_SPACY = (
    ("en", "gopher-repetition@datatrove", ()),
    ("en", "gopher@datatrove", ()),
    ("en", "fineweb@code", ()),
    ("en", "c4@datatrove", ()),
    ("en", "c4@fineweb", ()),
)
"""Slow: spaCy takes seconds to load."""

ODD = st.lists(
    st.sampled_from(
        [
            *"aZ1٣.?!\"'”’)]…。；#-•*{[ ",
            *"\n\t\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u3000\ufeff",
            *("\r\n", "\n\n", "\ud800", "\U0010ffff", "😀", "ΑΣ", "İ", "\u212a", "ß", "的", "是的"),
            *("one ", "two three ", "a b c d e f.", "的年在月", "好！", "？”", "3.14", "1.2.3"),
            *("The ", "wITH ", "lorem ", "ipsum", "JAVAscript", "uses coo\u212aies"),
            *(
                "cookie policy",
                "[1]",
                "[edit]",
                "[citation needed]",
                "[citation ",
                "terms of use",
                "Use Cookies",
            ),
        ]
    ),
    max_size=60,
).map("".join)
"""Text of what is read in a special way somewhere."""


@cache
def quality(language: str, name: str, bounds: Sequence[str], *, compiled: bool) -> Quality:
    def load() -> Quality:
        parsed = Quality.parse((f"{language}={name}",), bounds)
        parsed.judge(["a"], [language])
        return parsed

    return loaded(load, native=compiled)


def judged(
    choice: tuple[str, str, Sequence[str]], texts: Sequence[str], *, compiled: bool = False
) -> Judgement:
    return quality(*choice, compiled=compiled).judge(texts, [choice[0]] * len(texts))


def check(texts: Sequence[str], choices: Sequence[tuple[str, str, Sequence[str]]]) -> None:
    """Native loops find the same figures in the texts, and pass on the same."""
    for choice in choices:
        plain, native = judged(choice, texts), judged(choice, texts, compiled=True)
        assert native.texts == plain.texts
        assert native.changed.tolist() == plain.changed.tolist()
        assert native.reasons == plain.reasons
        for name, column in plain.metrics.items():
            for text, wanted, found in zip(texts, column, native.metrics[name], strict=True):
                assert wanted.tobytes() == found.tobytes(), (name, text, wanted, found)


def check_definitions(texts: Sequence[str], words: Sequence[str] | None = None) -> None:
    for name, (language, oracle) in ORACLES.items():
        found = judged((language, name, ()), texts)
        for row, text in enumerate(texts):
            chinese = chinese_words(text) if language == "zh" else None
            wanted = oracle(text, chinese or words or text.split())
            values = [column[row] for column in found.metrics.values()]
            assert values == pytest.approx(wanted, nan_ok=True, rel=1e-6), (name, text)


def test_texts_measure_as_defined() -> None:
    check_definitions(TEXTS)
    assert judged(("en", "c4", ()), TEXTS).texts == [c4_page(text)[1] for text in TEXTS]


@given(st.text(st.sampled_from("ab c.\n…-•#。！”；是的 1"), max_size=60))
def test_any_text_measures_as_defined(text: str) -> None:
    check_definitions([text])


@given(st.lists(st.sampled_from(["a", "b", "ab", "ba", "c"]), max_size=40))
def test_repeated_words_measure_as_defined(words: list[str]) -> None:
    # Few words make n-grams that overlap, and that spell the same when joined.
    check_definitions([" ".join(words)], words)


@pytest.mark.parametrize("choices", [CHOICES, BY_SPACY])
def test_texts_measure_as_before(choices: Sequence[tuple[str, str, Sequence[str]]]) -> None:
    check(
        [*TEXTS, *(text for text in EDGES if "\ud800" not in text or choices != BY_SPACY)], choices
    )


@given(ODD, st.sampled_from(CHOICES), st.integers(1, 3))
def test_any_text_measures_as_before(
    text: str, choice: tuple[str, str, Sequence[str]], times: int
) -> None:
    check([text * times], [choice])


@given(
    st.lists(st.integers(0, 40), max_size=8),
    st.text(st.sampled_from("ab。是的”\n 1."), min_size=41, max_size=60),
    st.sampled_from(CHOICES),
)
def test_repeated_text_measures_as_before(
    starts: list[int], text: str, choice: tuple[str, str, Sequence[str]]
) -> None:
    check(["".join(text[start : start + 20] for start in starts)], [choice])


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=5, max_size=30),
    st.lists(st.integers(1, 4), min_size=60, max_size=60),
)
def test_the_same_letters_in_other_words_measure_as_before(
    letters: list[str], lengths: list[int]
) -> None:
    text, ends = "".join(letters) * 3, itertools.accumulate(lengths)
    words = [text[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    check([" ".join(words)], [("en", "gopher-repetition", ())])


def test_every_character_measures_as_before() -> None:
    """Spaces, letters, marks, line breaks and small letters are those of Python."""
    every = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    texts = [
        "\n".join(f"{character}x {character} x{character}" for character in every[at : at + 4096])
        for at in range(0, len(every), 4096)
    ]
    check(texts, [("fr", "gopher", ()), ("fr", "fineweb", ()), ("fr", "c4", C4_BOUNDS)])
