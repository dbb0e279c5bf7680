"""Every profile measures by native loops what it measures in plain Python.

What the figures are, golden rows say: they have a text on each side of every bound.
"""

import sys
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
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
            *("cookie policy", "[1]", "[edit]", "[citation needed]", "[citation "),
            *("terms of use", "Use Cookies", "[4]]", "[٣]", "[citation needed[5]]"),
            *("..", "....", "…", "• ", "- ", "\u200b", "½", "ⅷ", "𝒳", "that", "\uff54\uff48\uff45"),
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


@pytest.mark.parametrize("choices", [CHOICES, BY_SPACY])
def test_texts_measure_the_same(choices: Sequence[tuple[str, str, Sequence[str]]]) -> None:
    check(
        [*TEXTS, *(text for text in EDGES if "\ud800" not in text or choices != BY_SPACY)], choices
    )


def again(text: str, starts: Sequence[int]) -> str:
    """Return stretches of a text, in any order and as often as they are named."""
    return "".join(text[start : start + 20] for start in starts)


def spelled(letters: str, ends: Sequence[int]) -> str:
    """Return the same letters three times, with spaces at other places."""
    return " ".join(map("".join, np.split([*letters * 3], ends)))


WORDS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "c"]), max_size=40).map(" ".join)
"""Few words make n-grams that overlap, and that spell the same when joined."""
ANY = st.one_of(
    ODD,
    ODD.map(lambda text: text * 3),
    WORDS,
    st.builds(again, st.text("ab。是的”\n 1.", min_size=60), st.lists(st.integers(0, 40))),
    st.builds(spelled, st.text("abcdefgh", min_size=5), st.sets(st.integers(0, 90)).map(sorted)),
)


@settings(max_examples=300)
@given(ANY, st.sampled_from(CHOICES))
def test_any_text_measures_the_same(text: str, choice: tuple[str, str, Sequence[str]]) -> None:
    check([text], [choice])


def test_every_character_measures_the_same() -> None:
    """Spaces, letters, marks, line breaks and small letters are those of Python."""
    every = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    texts = [
        "\n".join(f"{character}x {character} x{character}" for character in every[at : at + 4096])
        for at in range(0, len(every), 4096)
    ]
    check(texts, [("fr", "gopher", ()), ("fr", "fineweb", ()), ("fr", "c4", C4_BOUNDS)])
