from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.compiled.lines import every_character
from pipelines.quality.compiled.words import (
    Kinds,
    character_kinds,
    is_letter,
    is_mark,
    is_space,
    is_symbol,
)
from pipelines.quality.punctuation import PUNCTUATION
from pipelines.quality.spans import WordSpans
from pipelines.quality.words import DATATROVE, SPACES, MeasuredText
from tests.pipelines.quality.compiled.comparing import ODD, NoLibraries, real_texts
from tests.pipelines.quality.texts import TEXTS

SPLITTERS = NoLibraries()
EDGES = (
    "".join(chr(code) for code in range(0x110000) if chr(code).isspace()).join("abcdefghijklmnop"),
    "a\x1cb\x1fc\x85d\xa0e\u1680f\u2000g\u2028h\u3000i",
    "a\u180eb\u200bc\ufeffd\u2060e",
    "\r\n\r\nlast",
    "first\n",
    "\ud800 \udfff\U0010ffff 😀",
    "x" * 10_000,
)


def words_of(spans: WordSpans) -> list[str]:
    text = "".join(map(chr, spans.codes.tolist()))
    ranges = zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)
    return [text[start:end] for start, end in ranges]


def check(text: str, language: str = "en", kind: str = SPACES) -> None:
    measured = MeasuredText(text, language, splitters=SPLITTERS)
    assert words_of(measured.spans(kind)) == measured.words(kind)


@pytest.mark.parametrize(
    ("predicate", "of_python"),
    [
        (is_space, str.isspace),
        (is_letter, str.isalpha),
        (is_symbol, PUNCTUATION.__contains__),
        (is_mark, lambda character: character in "#.…" or f"{character}a".splitlines()[0] == ""),
    ],
)
def test_kinds_are_those_of_python(
    predicate: Callable[[Kinds, int], bool], of_python: Callable[[str], bool]
) -> None:
    kinds = character_kinds()
    characters = every_character()
    found = [predicate(kinds, code) for code in range(len(characters))]
    assert found == [*map(of_python, characters)]


@pytest.mark.parametrize("text", [*TEXTS, *EDGES])
def test_words_are_those_of_split(text: str) -> None:
    for language in ("en", "fr", "zh"):
        for kind in (SPACES, DATATROVE):
            check(text, language, kind)


@given(st.one_of(ODD, st.text(max_size=30)))
def test_words_of_any_text_are_those_of_split(text: str) -> None:
    check(text)


def test_words_of_real_texts_are_those_of_split() -> None:
    for text in real_texts("en", 1000):
        check(text)


def test_words_are_found_once() -> None:
    text = MeasuredText("a b", "en", splitters=SPLITTERS)
    assert text.spans(SPACES) is text.spans(SPACES)
    assert text.spans(SPACES).codes is text.codes
    assert text.codes.dtype == np.uint32
