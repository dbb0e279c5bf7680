"""Every profile measures a text in the same way in any batch, with and without the compiler.

Golden rows have the figures, with a text on each side of every bound. test_datatrove.py compares
the datatrove profiles with datatrove itself.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.quality import QualityResult, QualityRules
from tests.pipelines.quality.texts import EDGES, TEXTS

pytestmark = pytest.mark.slow

Choice = tuple[str, str, tuple[str, ...]]

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
"""Choices of profiles that load spaCy, which takes seconds."""

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
"""Texts of characters that some rule treats specially."""


def again(text: str, starts: Sequence[int]) -> str:
    """Return a text of pieces of a text, in any order, possibly repeated."""
    return "".join(text[start : start + 20] for start in starts)


def spelled(letters: str, ends: Sequence[int]) -> str:
    """Return the same letters three times, each time with different spaces."""
    return " ".join(map("".join, np.split([*letters * 3], ends)))


WORDS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "c"]), max_size=40).map(" ".join)
"""Texts of a few different words, whose n-grams overlap and have equal letters."""
ANY = st.one_of(
    ODD,
    ODD.map(lambda text: text * 3),
    WORDS,
    st.builds(again, st.text("ab。是的”\n 1.", min_size=60), st.lists(st.integers(0, 40))),
    st.builds(spelled, st.text("abcdefgh", min_size=5), st.sets(st.integers(0, 90)).map(sorted)),
)


@cache
def quality(language: str, name: str, bounds: Sequence[str]) -> QualityRules:
    return QualityRules.parse((f"{language}={name}",), bounds)


def judged(choice: Choice, texts: Sequence[str]) -> QualityResult:
    return quality(*choice).judge(texts, [choice[0]] * len(texts))


def texts_for(choice: Choice) -> list[str]:
    """Return the texts that the profiles can read; spaCy rejects half of a surrogate pair."""
    return [*TEXTS, *(text for text in EDGES if "\ud800" not in text or choice not in BY_SPACY)]


def check(texts: Sequence[str], choice: Choice) -> None:
    """Check that each text has the same metrics alone and in a batch."""
    together = judged(choice, [*TEXTS[:3], *texts, *TEXTS[-3:]])
    for at, text in enumerate(texts, 3):
        alone = judged(choice, [text])
        assert alone.texts == together.texts[at : at + 1]
        assert alone.reasons == together.reasons[at : at + 1]
        for name, column in alone.metrics.items():
            assert column.tobytes() == together.metrics[name][at : at + 1].tobytes(), (name, text)


@pytest.mark.parametrize("choice", [*CHOICES, *BY_SPACY])
def test_small_texts(choice: Choice) -> None:
    check(texts_for(choice), choice)
    assert judged(choice, []).texts == []


@settings(max_examples=300)
@given(st.lists(ANY, max_size=3), st.sampled_from(CHOICES))
def test_any_texts(texts: list[str], choice: Choice) -> None:
    check(texts, choice)


PLAIN = """
import json, sys
from pipelines.quality import QualityRules
for language, name, bounds, texts in json.load(sys.stdin):
    rules = QualityRules.parse((f"{language}={name}",), bounds)
    judged = rules.judge(texts, [language] * len(texts))
    figures = {name: column.tobytes().hex() for name, column in judged.metrics.items()}
    print(json.dumps([judged.texts, figures]))
"""


def test_the_same_source_measures_the_same_without_a_compiler() -> None:
    """The process must also print no warnings about overflowing numbers."""
    # For every Chinese choice, reading jieba's dictionary takes seconds.
    every = (*CHOICES, *BY_SPACY)
    choices = [choice for choice in every if choice[0] != "zh" or choice[1] == "fineweb2-zh"]
    asked = [(*choice, texts_for(choice)) for choice in choices]
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", PLAIN],
        input=json.dumps(asked),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    for choice, line in zip(choices, ran.stdout.splitlines(), strict=True):
        texts, figures = json.loads(line)
        found = judged(choice, texts_for(choice))
        assert found.texts == texts
        assert {name: one.tobytes().hex() for name, one in found.metrics.items()} == figures


def test_every_character_is_what_python_takes_it_for() -> None:
    every = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    texts = [f"{character}x {character} x{character}" for character in every]
    found = judged(("fr", "gopher", ()), texts).metrics
    words = np.array([len(text.split()) for text in texts], np.float32)
    letters = [sum(any(map(str.isalpha, word)) for word in text.split()) for text in texts]
    np.testing.assert_array_equal(found["gopher.words"], words)
    np.testing.assert_array_equal(
        found["gopher.alphabetic_words"], np.array(letters / words, np.float32)
    )
    lines = judged(("fr", "gopher", ()), [f"x{one}- " for one in every]).metrics
    shares = [
        np.mean([line.strip().startswith("-") for line in f"x{one}- ".splitlines()])
        for one in every
    ]
    np.testing.assert_array_equal(lines["gopher.bullet_lines"], np.array(shares, np.float32))


def pairs(text: str) -> list[str]:
    """Split a text into words of two characters, as a custom splitter might."""
    return [text[at : at + 2] for at in range(0, len(text), 2)]


def test_a_splitter_of_the_users_finds_the_words() -> None:
    own = QualityRules.parse([f"zh@{__name__}:pairs=gopher"])
    judged = own.judge(["人工智能正在改变我", "", "人"], ["zh"] * 3)
    assert judged.metrics["gopher.words"].tolist() == [5, 0, 1]
