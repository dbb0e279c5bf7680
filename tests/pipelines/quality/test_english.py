"""Words and sentences remembered by chunk are those of spaCy, text by text and line by line."""

import io
import itertools
import json
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.quality import english
from pipelines.quality.english import ASCII_UNITS, SAMPLES, English, Spacy
from tests.pipelines.quality.texts import TEXTS

BENCH = Path(__file__).parents[4] / "shared" / "data" / "bench"
# spaCy takes seconds to load.
pytestmark = pytest.mark.slow

ENGLISH = English()
SPACY = ENGLISH.spacy

ATOMS = (
    *string.printable,
    *("word", "Word", "WORD", "can't", "Can’t", "'Tis", "’em", "it's", "Mr.", "a.m.", "10", "3.14"),
    *(
        ":)",
        ":-(",
        "):",
        "8)",
        "(;",
        "¬_¬",
        "'''",
        "''",
        "<3",
        "C++",
        "and/or",
        "w/o",
        "\\n",
        "...",
    ),
    *("km", "km/h", "%", "US$", "C$", "A$", "€", "°C.", "°", "²", "µg", "5", "...", "…", "--", "—"),
    *(
        "http://a.bc/d-e?f",
        "www.x.org",
        "a@b.de",
        "10.0.0.1",
        "://",
        ".com",
        "e.g.",
        "i.e.",
        "N.Y.",
    ),
    *(
        "é",
        "ß",
        "中文",
        "。",
        "！",
        "“",
        "”",
        "‘",
        "’",
        "😀",
        "\u0301",
        "\u200b",
        "\ufeff",
        "म",
        "।",
    ),
    *("\x1c", "\x85", "\xa0", "\u2028", "\u3000", "  ", " ", " ", " ", "\r\n", "ORTH", "LOWER"),
)
TEXT = st.lists(st.sampled_from(ATOMS) | st.text(max_size=3), max_size=40).map("".join).filter(
    lambda text: text.isascii() or text.encode("utf-8", "ignore").decode() == text
)  # fmt: skip


def real_texts(name: str, most: int) -> Iterator[str]:
    path = BENCH / f"{name}.jsonl.zst"
    if not path.is_file():
        pytest.skip("the texts of the benchmarks are not at ../shared/data/bench")
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        lines = io.TextIOWrapper(stream, encoding="utf-8")
        for line in itertools.islice(lines, 0, most * 30, 30):
            yield json.loads(line)["text"]


def check(text: str) -> None:
    assert ENGLISH.words(text) == SPACY.words(text), text
    for line in (text, *text.split("\n")):
        assert ENGLISH.num_sentences([line]) == SPACY.num_sentences([line]), line


@given(TEXT)
@settings(deadline=None, max_examples=60)
def test_made_texts(text: str) -> None:
    check(text)


@pytest.mark.parametrize("text", TEXTS)
def test_small_texts(text: str) -> None:
    check(text)


@pytest.mark.parametrize("name", ["en", "zh"])
def test_real_texts(name: str) -> None:
    for text in real_texts(name, 60):
        check(text[:4000])


def test_every_pair_of_characters_of_ascii() -> None:
    rules = ENGLISH.rules
    assert rules is not None
    visible = [chr(code) for code in range(33, 127)]
    pairs = map("".join, itertools.product(visible, visible))
    texts = [text for pair in pairs for text in (pair, f"5{pair}", f"{pair}a")]
    with SPACY.pipeline.memory_zone():
        for text in texts:
            tokens = tuple(token.text for token in SPACY.pipeline.tokenizer(text))
            assert rules.chunk(text).words == tokens


def test_special_cases_within_affixes() -> None:
    rules = ENGLISH.rules
    assert rules is not None
    for text in rules.specials:
        check(f"({text}) {text}, {text}'s '{text}' {text}{text} -{text}. x{text} {text}/x 5{text}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hi:) x", ["hi", ":)", "x"]),
        # :)) is looked for too, and is longer; but with a space in it, it is none.
        ("hi:) ) x", ["hi", ":", ")", ")", "x"]),
        ("hi:)\n) x", ["hi", ":)", ")", "x"]),
        ("hi:)  ) x", ["hi", ":)", ")", "x"]),
        ("'''Tis", ["''", "'", "Tis"]),
    ],
)
def test_chunks_that_change_each_other(text: str, words: list[str]) -> None:
    assert ENGLISH.words(text) == SPACY.words(text) == words


@pytest.mark.parametrize(
    "text", [*map("".join, itertools.product((" ", "  ", "\n ", " \n", "x", "x.", ""), repeat=3))]
)
def test_white_space_that_is_a_token(text: str) -> None:
    check(text)


def test_the_word_that_spacy_cannot_read() -> None:
    for text in ("IS_ALPHA", "IS_ALPHA IS_ALPHA x", "aIS_ALPHAb IS_ALPHA."):
        check(text)
    assert ENGLISH.num_sentences(["One. IS_ALPHA", "", "Two. Three"]) == 3
    assert ENGLISH.num_sentences([]) == 0


def test_lone_surrogates_are_refused() -> None:
    for splitter in (ENGLISH, SPACY):
        with pytest.raises(UnicodeEncodeError):
            splitter.words("a \ud800 b")
        with pytest.raises(UnicodeEncodeError):
            splitter.num_sentences(["a \ud800 b"])


def test_long_chunks() -> None:
    for chunk in ("a" * 20_000, "1," * 700, "." * 700, "(" * 300 + ")" * 300, "ab-" * 700):
        check(f"so {chunk} it is.")


def test_chunks_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(english, "_MOST_BYTES", 1000)
    for _ in range(2):
        for text in ("One, two (three). hi:) ) x", *TEXTS):
            check(text)


def test_other_rules_than_expected(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(english, "MARKS", english.MARKS | {"0"})
    other = English()
    text = " ".join(SAMPLES)
    assert other.words(text) == SPACY.words(text)
    assert other.num_sentences([text]) == SPACY.num_sentences([text])
    assert other.rules is None
    assert caplog.messages == [
        "A memory of English words is not used: it splits '100%' otherwise. "
        "spaCy, which is slow, takes its place."
    ]


def test_units_are_those_of_spacy() -> None:
    classes = pytest.importorskip("spacy.lang.char_classes")
    assert {unit for unit in classes.LIST_UNITS if unit.isascii()} == {*ASCII_UNITS}


def test_spacy_is_loaded_on_first_use() -> None:
    assert "pipeline" not in vars(Spacy())
    assert not {"rules", "_words"} & vars(English()).keys()
