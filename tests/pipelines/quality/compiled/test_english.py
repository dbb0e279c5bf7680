"""Compiled English words and sentences are those of plain Python, which test_english compares."""

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines import compiled
from pipelines.quality.english import English
from pipelines.quality.spans import code_points
from pipelines.quality.words import DATATROVE, MeasuredText, Splitters
from tests.pipelines.quality.test_english import ATOMS, ENGLISH, SPACY, TEXT, real_texts
from tests.pipelines.quality.texts import TEXTS

if not compiled.available():
    pytest.skip("numba is not installed", allow_module_level=True)

from pipelines.quality.compiled import english
from pipelines.quality.compiled.english import CompiledEnglish

# spaCy takes seconds to load, and loops to compile.
pytestmark = pytest.mark.slow


def fresh() -> CompiledEnglish:
    plain = English()
    assert plain.rules is not None
    return CompiledEnglish(plain, plain.rules)


COMPILED = fresh()
ASCII = st.lists(st.sampled_from([atom for atom in ATOMS if atom.isascii()]), max_size=60).map(
    "".join
)


def check(text: str, splitter: CompiledEnglish = COMPILED) -> None:
    assert splitter.words(text) == ENGLISH.words(text), text
    lines = text.split("\n")
    assert splitter.num_sentences(lines) == ENGLISH.num_sentences(lines), text
    assert splitter.num_sentences([text]) == ENGLISH.num_sentences([text]), text


@given(TEXT | ASCII)
@settings(deadline=None, max_examples=300)
def test_made_texts(text: str) -> None:
    check(text)


@pytest.mark.parametrize("text", TEXTS)
def test_small_texts(text: str) -> None:
    check(text)


@pytest.mark.parametrize("name", ["en", "zh"])
def test_real_texts(name: str) -> None:
    found = 0
    for text in real_texts(name, 300):
        check(text)
        found += COMPILED.spans(text, code_points(text)) is not None
    assert found > 250  # most need no plain Python


def test_every_pair_of_characters_of_ascii() -> None:
    visible = [chr(code) for code in range(33, 127)]
    pairs = [*map("".join, itertools.product(visible, visible))]
    for start, end in (("", ""), ("5", ""), ("", "a"), ("A", "S"), (".", "."), ("a", "A")):
        for first in visible:
            check("\n".join(f"{start}{pair}{end}" for pair in pairs if pair[0] == first))


def test_special_cases_within_affixes() -> None:
    rules = ENGLISH.rules
    assert rules is not None
    for text in rules.specials:
        check(f"({text}) {text}, {text}'s '{text}' {text}{text} -{text}. x{text} {text}/x 5{text}")


def addresses() -> Iterable[str]:
    schemes = ("", "http://", "a+b.c://", "://", "x:", "me@", "a:b@")
    hosts = (
        "a.bc",
        f"{'a' * 64}.bc",
        f"{'a' * 65}.bc",
        f"a.{'b' * 64}",
        "a.b",
        "a-b.c_d.efg",
        "A.BC",
        "a.Bc",
        "1.2.3.4",
        "10.0.0.1",
        "a..bc",
        "a.b1",
    )
    ends = ("", ":80", ":8", "/x-y", "?q=a-b", "#a/b", "(a)", "=a", ",a", "-", "/")
    return map("".join, itertools.product(schemes, hosts, ends, ("", "-z")))


def test_internet_addresses() -> None:
    check("\n".join(addresses()))


@pytest.mark.parametrize("text", ["hi:) x", "hi:) ) x", "hi:)\n) x", "hi:)  ) x", "'''Tis :)) )"])
def test_chunks_that_change_each_other(text: str) -> None:
    check(text)
    assert COMPILED.words(text) == SPACY.words(text)


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["", ""],
        [" ", "\n", "x. ", "x.  ", " x.\t", "x.\u3000y"],
        ["One. Two", "three. Four", "five.", "Six"],
        ["IS_ALPHA One. IS_ALPHA Two", "IS_ALPHA"],
        ['"One." Two (three.) [four.', "a.) b", "no end 。 x", "x！y ！ z"],
    ],
)
def test_sentences_of_lines(lines: list[str]) -> None:
    assert COMPILED.num_sentences(lines) == SPACY.num_sentences(lines)


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        COMPILED.words("a \ud800 b")
    with pytest.raises(UnicodeEncodeError):
        COMPILED.num_sentences(["a \ud800 b"])
    check("a b")


def test_long_chunks() -> None:
    for chunk in ("a" * 100_000, "1," * 700, "." * 9000, "(" * 900 + ")" * 900, "ab-" * 9000):
        check(f"so {chunk} it is.")


def test_chunks_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(english, "_MOST_CHUNKS", 10)
    splitter = fresh()
    for _ in range(2):
        for text in ("One, two (three). hi:) ) x é à l’ü", *TEXTS):
            check(text, splitter)


def test_many_chunks() -> None:
    splitter = fresh()
    check(" ".join(f"é{number} {number}à" for number in range(5000)), splitter)


def test_other_words_than_expected(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(english, "MARKS", english.MARKS | {"0"})
    text = "It was $5.00, (really)."
    check_plain(text)
    assert caplog.messages == [
        "Compiled code for English words is not used: it splits '100%' otherwise. "
        "Plain Python takes its place."
    ]


def test_without_numba(broken_numba: str, caplog: pytest.LogCaptureFixture) -> None:
    check_plain("Don't stop, Mr. Smith.")
    assert caplog.messages == [broken_numba]


def check_plain(text: str) -> None:
    """Plain Python splits where loops were asked for."""
    splitters = Splitters(compiled=True)
    assert splitters.words(text, language="en", kind=DATATROVE) == SPACY.words(text)
    assert splitters.num_sentences([text]) == SPACY.num_sentences([text])
    assert splitters.spans(text, code_points(text), language="en", kind=DATATROVE) is None


def test_words_of_a_measured_text() -> None:
    splitters = Splitters(compiled=True)
    for text in ("Don't stop, Mr. Smith.", "hi:) )", "IS_ALPHA x", ""):
        measured = MeasuredText(text, "en", splitters=splitters)
        codes, starts, ends = measured.spans(DATATROVE)
        words = [
            "".join(map(chr, codes[start:end])) for start, end in zip(starts, ends, strict=True)
        ]
        assert words == measured.words(DATATROVE) == SPACY.words(text)
