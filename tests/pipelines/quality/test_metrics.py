"""Every profile measures by native loops what it measures in plain Python.

What the figures are, golden rows say: they have a text on each side of every bound.
"""

import itertools
import sys
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality import Judgement, Quality
from tests.pipelines.native import loaded
from tests.pipelines.quality.texts import EDGES, TEXTS

pytestmark = pytest.mark.slow

C4_BOUNDS = ("c4.max_word_chars=3", "c4.terminal_punctuation=0", "c4.min_line_words=3")
CHOICES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("en", "glm", ()),
    ("en", "gopher-repetition", ()),
    ("en", "gopher", ()),
    ("en", "c4", ()),
    ("en", "fineweb", ()),
    ("zh", "fineweb2-zh", ()),
    ("zh", "fineweb2-zh@datatrove", ()),
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


def test_shares_of_nothing_are_no_numbers() -> None:
    empty = [judged(choice, [""]).metrics.values() for choice in CHOICES[:7]]
    nans = [sum(np.isnan(column[0]) for column in columns) for columns in empty]
    assert nans == [0, 13, 6, 0, 4, 19, 18]


@pytest.mark.parametrize("choices", [CHOICES, BY_SPACY])
def test_texts_measure_the_same(choices: Sequence[tuple[str, str, Sequence[str]]]) -> None:
    check(
        [*TEXTS, *(text for text in EDGES if "\ud800" not in text or choices != BY_SPACY)], choices
    )


@given(st.lists(st.sampled_from(["a", "b", "ab", "ba", "c"]), max_size=40))
def test_repeated_words_measure_the_same(words: list[str]) -> None:
    # Few words make n-grams that overlap, and that spell the same when joined.
    check([" ".join(words)], [("en", "gopher-repetition", ()), ("zh", "fineweb2-zh", ())])


@given(ODD, st.sampled_from(CHOICES), st.integers(1, 3))
def test_any_text_measures_the_same(
    text: str, choice: tuple[str, str, Sequence[str]], times: int
) -> None:
    check([text * times], [choice])


@given(
    st.lists(st.integers(0, 40), max_size=8),
    st.text(st.sampled_from("ab。是的”\n 1."), min_size=41, max_size=60),
    st.sampled_from(CHOICES),
)
def test_repeated_text_measures_the_same(
    starts: list[int], text: str, choice: tuple[str, str, Sequence[str]]
) -> None:
    check(["".join(text[start : start + 20] for start in starts)], [choice])


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=5, max_size=30),
    st.lists(st.integers(1, 4), min_size=60, max_size=60),
)
def test_the_same_letters_in_other_words_measure_the_same(
    letters: list[str], lengths: list[int]
) -> None:
    text, ends = "".join(letters) * 3, itertools.accumulate(lengths)
    words = [text[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    check([" ".join(words)], [("en", "gopher-repetition", ())])


def test_every_character_measures_the_same() -> None:
    """Spaces, letters, marks, line breaks and small letters are those of Python."""
    every = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    texts = [
        "\n".join(f"{character}x {character} x{character}" for character in every[at : at + 4096])
        for at in range(0, len(every), 4096)
    ]
    check(texts, [("fr", "gopher", ()), ("fr", "fineweb", ()), ("fr", "c4", C4_BOUNDS)])
