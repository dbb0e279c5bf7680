"""The rules for Chinese as compiled loops; pipelines/quality/chinese.py defines the metrics."""

from functools import cache

import numpy as np

from pipelines.compiled import kernel
from pipelines.quality.compiled.fineweb import count_lines, line_kinds
from pipelines.quality.compiled.gopher import datatrove_metrics
from pipelines.quality.compiled.lines import (
    Codes,
    Kinds,
    Places,
    character_bits,
    count_repeats,
    matching,
)
from pipelines.quality.compiled.ngrams import datatrove_shares
from pipelines.quality.gopher import CHINESE_STOP_WORDS
from pipelines.quality.profile import NAN, Bounds
from pipelines.quality.punctuation import CHINESE_CLOSING, CHINESE_ENDS, UNIT_ENDS
from pipelines.quality.repetition import ratio
from pipelines.quality.words import DATATROVE, MeasuredText

_SPACE, _END, _CLOSING, _UNIT_END = 1, 2, 4, 8
_LINE_FEED = ord("\n")


@cache
def _kinds() -> Kinds:
    """Return what the loops ask of characters."""
    return character_bits(matching(r"\s"), CHINESE_ENDS, CHINESE_CLOSING, UNIT_ENDS)


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
