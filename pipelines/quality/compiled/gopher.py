"""Gopher's quality rules as compiled loops; pipelines/quality/gopher.py defines the metrics."""

from collections.abc import Collection
from functools import cache

import numpy as np

from pipelines.compiled import kernel, kernel_in_place
from pipelines.quality.compiled.lines import Codes, Kinds, Places
from pipelines.quality.compiled.words import (
    character_kinds,
    is_letter,
    is_mark,
    is_space,
    is_symbol,
)
from pipelines.quality.gopher import CHINESE_STOP_WORDS, ENGLISH_STOP_WORDS
from pipelines.quality.profile import NAN, Bounds
from pipelines.quality.repetition import ratio
from pipelines.quality.spans import WordSpans
from pipelines.quality.words import CHINESE, DATATROVE, ENGLISH, SPACES, MeasuredText

_BULLET, _DASH, _STAR = np.uint32(0x2022), np.uint32(0x2D), np.uint32(0x2A)
_HASH, _DOT, _ELLIPSIS = np.uint32(0x23), np.uint32(0x2E), np.uint32(0x2026)
_LINE_FEED, _RETURN = np.uint32(0x0A), np.uint32(0x0D)
_UPPER_A, _UPPER_Z, _TO_LOWER = np.uint32(0x41), np.uint32(0x5A), np.uint32(0x20)
_DOTS = 3


def datatrove_metrics(text: MeasuredText, stop_words: Collection[str]) -> tuple[float, ...]:
    """Return the metrics of gopher.datatrove_metrics()."""
    words = text.spans(DATATROVE)
    num_words = len(words.starts)
    _, plain, plain_letters, alphabetic = _word_counts(words)
    return (
        plain,
        ratio(plain_letters, plain),
        *_symbols_and_lines(text.codes, num_words, stars=False),
        ratio(alphabetic, num_words),
        _num_stop_words(words, frozenset(stop_words), any_case=False),
    )


def measure_datatrove(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    """Return the text and what gopher@datatrove measures in it."""
    return text, datatrove_metrics(text, ENGLISH_STOP_WORDS)


def measure_paper(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    """Return the text and what gopher@paper measures in it."""
    words = text.spans(SPACES)
    num_words = len(words.starts)
    letters, _plain, _plain_letters, alphabetic = _word_counts(words)
    return text, (
        num_words,
        ratio(letters, num_words),
        *_symbols_and_lines(text.codes, num_words, stars=True),
        ratio(alphabetic, num_words),
        _stop_words_of(words, text.language),
    )


def _word_counts(words: WordSpans) -> list[int]:
    counts = np.empty(4, np.int64)
    _count_words(words.codes, words.starts, words.ends, character_kinds(), counts)
    return counts.tolist()


def _stop_words_of(words: WordSpans, language: str) -> float:
    if language in CHINESE:
        return _num_stop_words(words, CHINESE_STOP_WORDS, any_case=False)
    if language != ENGLISH:
        return NAN
    return _num_stop_words(words, ENGLISH_STOP_WORDS, any_case=True)


def _num_stop_words(words: WordSpans, stop_words: frozenset[str], *, any_case: bool) -> int:
    return _count_stop_words(words.codes, words.starts, words.ends, _rows(stop_words), any_case)


def _symbols_and_lines(codes: Codes, num_words: int, *, stars: bool) -> tuple[float, ...]:
    """Return hash signs and ellipses per word, and the shares of lines with such marks."""
    counts = np.empty(5, np.int64)
    _count_marks(codes, character_kinds(), stars, counts)
    lines, hashes, ellipses, begun, ended = counts.tolist()
    return (
        ratio(hashes, num_words),
        ratio(ellipses, num_words),
        ratio(begun, lines),
        ratio(ended, lines),
    )


@cache
def _rows(stop_words: frozenset[str]) -> Codes:
    """Return words as rows of a table: the length, and the code points, filled up with 0."""
    rows = np.zeros((len(stop_words), 1 + max(map(len, stop_words))), np.uint32)
    for row, word in zip(rows, sorted(stop_words), strict=True):
        row[: len(word) + 1] = [len(word), *map(ord, word)]
    return rows


@kernel_in_place
def _count_words(codes: Codes, starts: Places, ends: Places, kinds: Kinds, counts: Places) -> None:
    """Count the letters of words; words that are not symbols alone, their letters; alphabetic ones.

    Args:
        codes: Code points.
        starts: Where each word begins in them.
        ends: Where it ends.
        kinds: See character_kinds().
        counts: Takes the four counts.
    """
    letters = plain = plain_letters = alphabetic = 0
    for word in range(len(starts)):
        start, end = starts[word], ends[word]
        # Most words begin with a letter, which settles both.
        has_letter = is_letter(kinds, codes[start])
        is_plain = has_letter
        for place in range(start, start if has_letter else end):
            has_letter |= is_letter(kinds, codes[place])
            is_plain |= not is_symbol(kinds, codes[place])
        letters += end - start
        alphabetic += has_letter
        if is_plain:
            plain += 1
            plain_letters += end - start
    counts[0], counts[1], counts[2], counts[3] = letters, plain, plain_letters, alphabetic


@kernel
def _count_stop_words(
    codes: Codes, starts: Places, ends: Places, stop_words: Codes, any_case: bool
) -> int:
    """Return how many of the words in the table of _rows() occur.

    Args:
        codes: Code points.
        starts: Where each word begins in them.
        ends: Where it ends.
        stop_words: The table.
        any_case: Whether A to Z stand for a to z.
    """
    met = np.empty(len(stop_words), np.bool_)
    met[:] = False
    num_missing = len(stop_words)
    for word in range(len(starts)):
        start, end = starts[word], ends[word]
        if end - start >= stop_words.shape[1]:
            continue
        for row in range(len(stop_words)):
            if not met[row] and _is_word(codes, start, end, stop_words[row], any_case):
                met[row] = True
                num_missing -= 1
        if not num_missing:
            break
    return len(stop_words) - num_missing


@kernel_in_place
def _is_word(codes: Codes, start: int, end: int, row: Codes, any_case: bool) -> bool:
    """Return whether a range of code points is the word of a row; any_case as above."""
    if end - start != row[0]:
        return False
    for place in range(start, end):
        code = codes[place]
        if any_case and _UPPER_A <= code <= _UPPER_Z:
            code += _TO_LOWER
        if code != row[place - start + 1]:
            return False
    return True


@kernel_in_place
def _count_marks(codes: Codes, kinds: Kinds, stars: bool, counts: Places) -> None:
    """Count lines, hash signs, ellipses, lines that begin with a bullet, and with an ellipsis end.

    Args:
        codes: Code points of a text.
        kinds: See character_kinds().
        stars: Whether * is a bullet.
        counts: Takes the five counts.
    """
    counts[:] = 0
    line = dots = dots_end = 0
    for place in range(len(codes)):
        code = codes[place]
        if not is_mark(kinds, code):
            continue
        if code == _HASH:
            counts[1] += 1
        elif code == _ELLIPSIS:
            counts[2] += 1
        elif code == _DOT:
            dots = dots + 1 if place == dots_end else 1
            dots_end = place + 1
            counts[2] += dots % _DOTS == 0
        else:
            if place > line or code != _LINE_FEED or place == 0 or codes[place - 1] != _RETURN:
                _count_line(codes[line:place], kinds, stars, counts)
            line = place + 1
    if line < len(codes):
        _count_line(codes[line:], kinds, stars, counts)


@kernel_in_place
def _count_line(codes: Codes, kinds: Kinds, stars: bool, counts: Places) -> None:
    """Count a line as above; it may be empty."""
    start, end = 0, len(codes)
    while start < end and is_space(kinds, codes[start]):
        start += 1
    while start < end and is_space(kinds, codes[end - 1]):
        end -= 1
    counts[0] += 1
    if start < end:
        first, last = codes[start], codes[end - 1]
        counts[3] += first == _BULLET or first == _DASH or (stars and first == _STAR)  # noqa: PLR1714  not a tuple in compiled code
        dotted = end - start >= _DOTS and last == codes[end - 2] == codes[end - 3] == _DOT
        counts[4] += dotted or last == _ELLIPSIS
