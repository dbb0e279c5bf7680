"""The rules for Chinese as compiled loops; pipelines/quality/chinese.py defines the metrics."""

from functools import cache

import numpy as np

from pipelines.compiled import kernel
from pipelines.quality.chinese import GRAM
from pipelines.quality.compiled.fineweb import count_lines, line_kinds
from pipelines.quality.compiled.gopher import datatrove_metrics
from pipelines.quality.compiled.lines import (
    Codes,
    Kinds,
    Places,
    character_bits,
    count_repeats,
    equal_ranges,
    every_character,
    matching,
    text_of,
)
from pipelines.quality.compiled.ngrams import datatrove_shares
from pipelines.quality.gopher import CHINESE_STOP_WORDS
from pipelines.quality.profile import NAN, Bounds
from pipelines.quality.punctuation import CHINESE_CLOSING, CHINESE_ENDS, UNIT_ENDS
from pipelines.quality.repetition import ratio
from pipelines.quality.spans import code_points
from pipelines.quality.words import DATATROVE, MeasuredText

_SPACE, _END, _CLOSING, _UNIT_END, _DIGIT, _CASED, _UNUSUAL = 1, 2, 4, 8, 16, 32, 64
_LINE_FEED, _DOT, _CAPITAL_A, _CAPITAL_Z, _SMALL_A, _SMALL_Z = b"\n.AZaz"
_FIRST_HAN, _LAST_HAN = 0x4E00, 0x9FFF
_NO_NUMBER, _INTEGER, _POINT, _FRACTION = range(4)

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)

_LONGER_OR_BY_CONTEXT = "İΣ"
"""What str.lower() makes two characters of, or one or another by what stands beside it."""


@cache
def _lower_case() -> Codes:
    """Return the small letter of each character but _LONGER_OR_BY_CONTEXT."""
    letters = every_character()
    for unusual in _LONGER_OR_BY_CONTEXT:
        letters = letters.replace(unusual, " ")
    return code_points(letters.lower())


@cache
def _kinds() -> Kinds:
    """Return what the loops ask of characters."""
    every = code_points(every_character())
    return character_bits(
        matching(r"\s"),
        CHINESE_ENDS,
        CHINESE_CLOSING,
        UNIT_ENDS,
        matching(r"\d"),
        text_of(every[every != _lower_case()]),
        _LONGER_OR_BY_CONTEXT,
    )


@kernel
def _is_single_line(codes: Codes, kinds: Kinds) -> bool:
    """Return whether a text has one line, not counting blank ones before and after it."""
    first, end = 0, len(codes)
    while first < end and kinds[codes[first]] & _SPACE:
        first += 1
    while first < end and kinds[codes[end - 1]] & _SPACE:
        end -= 1
    for at in range(first, end):  # noqa: SIM110  no generators in compiled code
        if codes[at] == _LINE_FEED:
            return False
    return True


@kernel
def _find_units(
    codes: Codes,
    kinds: Kinds,
    starts: Places,
    ends: Places,
) -> int:
    """Write where the sentences of a text begin and end, and return their number.

    Args:
        codes: Code points of a text of a single line.
        kinds: See _kinds().
        starts: int64[len(codes) // 2 + 1] or more.
        ends: As long.
    """
    num_units = at = 0
    while at < len(codes):
        start = at
        while at < len(codes) and not kinds[codes[at]] & _END:
            at += 1
        while at < len(codes) and kinds[codes[at]] & _END:
            at += 1
        while at < len(codes) and kinds[codes[at]] & _CLOSING:
            at += 1
        end = at
        while start < end and kinds[codes[start]] & _SPACE:
            start += 1
        while start < end and kinds[codes[end - 1]] & _SPACE:
            end -= 1
        if start < end:
            starts[num_units], ends[num_units] = start, end
            num_units += 1
    return num_units


@kernel
def _count_units(codes: Codes, kinds: Kinds) -> tuple[int, int, int, int]:
    """Return counts of the sentences of a text of a single line.

    Args:
        codes: Code points of the text.
        kinds: See _kinds().

    Returns:
        Sentences, -1 if the text has several lines; those that have their end mark; those seen
        before; the characters in these.
    """
    if not _is_single_line(codes, kinds):
        return -1, 0, 0, 0
    starts, ends = np.empty(len(codes) // 2 + 1, np.int64), np.empty(len(codes) // 2 + 1, np.int64)
    num_units = _find_units(codes, kinds, starts, ends)
    num_ended = 0
    for unit in range(num_units):
        end = ends[unit]
        while end > starts[unit] and kinds[codes[end - 1]] & _CLOSING:
            end -= 1
        num_ended += end > starts[unit] and kinds[codes[end - 1]] & _UNIT_END > 0
    num_repeats, num_chars = count_repeats(codes, starts[:num_units], ends[:num_units])
    return num_units, num_ended, num_repeats, num_chars


@kernel
def _count_parts(codes: Codes) -> tuple[int, int]:
    """Return how many parts runs of line feeds divide a text into, and how many were seen before.

    A part at the beginning or the end may be empty.
    """
    starts, ends = np.empty(len(codes) // 2 + 2, np.int64), np.empty(len(codes) // 2 + 2, np.int64)
    starts[0] = num_parts = at = 0
    while at < len(codes):
        if codes[at] != _LINE_FEED:
            at += 1
            continue
        ends[num_parts] = at
        num_parts += 1
        while at < len(codes) and codes[at] == _LINE_FEED:
            at += 1
        starts[num_parts] = at
    ends[num_parts] = len(codes)
    num_repeats, _ = count_repeats(codes, starts[: num_parts + 1], ends[: num_parts + 1])
    return num_parts + 1, num_repeats


@kernel
def _count_repeated_grams(letters: Codes, length: int) -> int:
    """Return how many runs of `length` letters occur more than once, each as often as it does."""
    num_grams = len(letters) - length + 1
    bits = 1
    while (1 << bits) < 2 * num_grams:
        bits += 1
    shift, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    # Where a run was first seen, counted from 1; below zero once it was seen again.
    slots = np.zeros(1 << bits, np.int32)
    key, oldest = np.uint64(0), np.uint64(1)
    for at in range(min(length, len(letters)) - 1):
        key = key * _FACTOR + np.uint64(letters[at])
        oldest *= _FACTOR
    num_repeated = 0
    for start in range(num_grams):
        key = key * _FACTOR + np.uint64(letters[start + length - 1])
        slot = ((key ^ (key >> np.uint64(32))) * _SPREAD) >> shift
        while slots[slot] != 0:
            first = abs(slots[slot])
            if equal_ranges(letters, first - 1, start, length):
                num_repeated += 1 if slots[slot] < 0 else 2
                slots[slot] = -first
                break
            slot = (slot + np.uint64(1)) & mask
        else:
            slots[slot] = start + 1
        key -= oldest * np.uint64(letters[start])
    return num_repeated


@kernel
def _count_characters(
    codes: Codes,
    kinds: Kinds,
    lower: Codes,
    length: int,
) -> tuple[int, int, int, int, int, int, int]:
    """Return counts of what is in a text.

    Args:
        codes: Code points of the text.
        kinds: See _kinds().
        lower: See _lower_case().
        length: The letters of a run.

    Returns:
        Lines, or sentences if there is a single line; Han characters; words of Latin letters; line
        breaks; numbers; characters without white space, in small letters; the runs among these that
        occur more than once, or -1 if str.lower() has to find the small letters.
    """
    letters = np.empty(len(codes), np.uint32)
    num_han = num_latin = num_breaks = num_numbers = num_letters = 0
    in_word, usual, number = False, True, _NO_NUMBER
    for code in codes:
        kind = kinds[code]
        if _FIRST_HAN <= code <= _LAST_HAN:
            num_han += 1
        is_latin = _SMALL_A <= code <= _SMALL_Z or _CAPITAL_A <= code <= _CAPITAL_Z
        num_latin += is_latin and not in_word
        in_word = is_latin
        if kind & _DIGIT:
            num_numbers += number == _NO_NUMBER
            number = _FRACTION if number >= _POINT else _INTEGER
        elif number != _NO_NUMBER:
            number = _POINT if code == _DOT and number == _INTEGER else _NO_NUMBER
        if kind & _SPACE:
            num_breaks += code == _LINE_FEED
            continue
        usual &= kind & _UNUSUAL == 0
        letters[num_letters] = lower[code] if kind & _CASED else code
        num_letters += 1
    num_lines = num_breaks + 1
    if _is_single_line(codes, kinds):
        places = np.empty((2, len(codes) // 2 + 1), np.int64)
        num_lines = _find_units(codes, kinds, places[0], places[1])
    num_repeated = _count_repeated_grams(letters[:num_letters], length) if usual else -1
    return num_lines, num_han, num_latin, num_breaks, num_numbers, num_letters, num_repeated


def measure_lines(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    """Return the text and what fineweb2-zh@datatrove measures in it."""
    num_lines, ended, _short, repeated, breaks = count_lines(text.codes, line_kinds(), NAN)
    num_parts, num_repeats = _count_parts(text.codes)
    return text, _fineweb2(
        text,
        dup_line=ratio(num_repeats, num_parts),
        punctuated_lines=ratio(ended, num_lines),
        dup_line_chars=ratio(repeated, len(text.text) - breaks),
    )


def measure_units(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    """Return the text and what fineweb2-zh@sentences measures in it."""
    num_units, ended, num_repeats, repeated = _count_units(text.codes, _kinds())
    if num_units < 0:
        return measure_lines(text, bounds)
    return text, _fineweb2(
        text,
        dup_line=ratio(num_repeats, num_units),
        punctuated_lines=ratio(ended, num_units),
        dup_line_chars=ratio(repeated, len(text.text) - text.text.count("\n")),
    )


def _fineweb2(
    text: MeasuredText, *, dup_line: float, punctuated_lines: float, dup_line_chars: float
) -> tuple[float, ...]:
    words = text.spans(DATATROVE)
    return (
        dup_line,
        *datatrove_shares(words, len(text.text)),
        punctuated_lines,
        dup_line_chars,
        ratio(text.text.count("\n"), len(words.starts)),
        *datatrove_metrics(text, CHINESE_STOP_WORDS),
    )


def measure_web(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    """Return the text and what chinese-web measures in it."""
    whole = text.text
    lines, han, latin, breaks, numbers, num_letters, repeated = _count_characters(
        text.codes, _kinds(), _lower_case(), GRAM
    )
    if repeated < 0:
        letters = code_points("".join(whole.lower().split())).copy()
        num_letters, repeated = len(letters), _count_repeated_grams(letters, GRAM)
    content = han + latin
    return text, (
        len(whole),
        ratio(len(whole), lines),
        ratio(han, len(whole)),
        ratio(breaks, content),
        ratio(numbers, content),
        repeated / (num_letters - GRAM + 1) if repeated else 0.0,
    )
