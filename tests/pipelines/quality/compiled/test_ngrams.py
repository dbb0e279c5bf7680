from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.quality.compiled.ngrams import datatrove_shares, paper_shares
from pipelines.quality.repetition import datatrove_ngrams, paper_ngrams
from pipelines.quality.spans import WordSpans, code_points
from tests.pipelines.quality.compiled.comparing import real_texts

EDGES = (
    "",
    "one",
    "one two",
    "a a",
    "a b c d",
    "a b c d e",
    "a b c d e a b c d e",
    "b a b a b a b a b a b a",
    # top n-grams: the first of equals
    "a b c d x a b c d y q r s t z q r s t",
    "long-words first long-words first and then then and",
    # n-grams that spell the same, whose words begin elsewhere
    "ab c d e f g h a bc d e f g h",
    "a b c d e f g h i j x ab cd ef gh ij y a b c d e f g h i j",
    # short words at one place, and long ones at the other, where the n-gram is the same
    "a b c d e fghijklmnop q r s t u abcd e f g h i jklmnop q r s t u",
    "a b c d e fghijklmnopqrstuvw x y z 1 abcde f g h i jklmnopqrstuvw x y z 1",
    "x " * 300,
    "x y " * 300,
    " ".join("abcdefghij" * 20),
    # sums of letters that are the same, in another order
    "ab ba aab aba baa abb bab bba " * 7,
    f"{'x' * 5000} {'x' * 5000} {'x' * 4999}y " * 4,
)


def spans(words: Sequence[str], *, between: str = "") -> WordSpans:
    lengths = np.array([*map(len, words)], np.int64)
    starts = np.cumsum(lengths + len(between)) - lengths - len(between)
    return WordSpans(code_points(between.join(words)), starts, starts + lengths)


def check(words: Sequence[str]) -> None:
    wanted = repr(paper_ngrams(words)), repr(datatrove_ngrams(words, 1000))
    for between in ("", "\t "):
        given_words = spans(words, between=between)
        shares = paper_shares(given_words), datatrove_shares(given_words, 1000)
        assert tuple(map(repr, shares)) == wanted, words


@pytest.mark.parametrize("text", EDGES)
def test_shares_are_those_of_the_plain_rules(text: str) -> None:
    check(text.split())


@given(st.lists(st.sampled_from(["a", "b", "ab", "ba", "c", "abababab"]), max_size=80))
def test_few_words(words: list[str]) -> None:
    check(words)


@given(st.lists(st.text(st.characters(exclude_characters=" "), min_size=1), max_size=40))
def test_any_words(words: list[str]) -> None:
    check(words * 3)


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=5, max_size=30),
    st.lists(st.integers(1, 4), min_size=60, max_size=60),
)
def test_the_same_letters_in_other_words(letters: list[str], lengths: list[int]) -> None:
    text = "".join(letters) * 3
    ends = np.cumsum(lengths)
    words = [text[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    check([word for word in words if word])


@given(st.lists(st.sampled_from(["a", "b", "a b", "b a", " ", "  "]), max_size=30))
def test_words_with_spaces_in_them(words: list[str]) -> None:
    # Joined by spaces, other words may spell the same.
    check(words)


def test_no_words_and_no_text() -> None:
    nothing = spans([])
    assert repr(datatrove_shares(nothing, 0)) == repr(datatrove_ngrams([], 0))
    assert repr(paper_shares(nothing)) == repr(paper_ngrams([]))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_real_texts(language: str) -> None:
    for text in real_texts(language, 300):
        # Characters in place of words, where there are no spaces.
        check(text.split() if language == "en" else [*"".join(text.split())][:2000])
