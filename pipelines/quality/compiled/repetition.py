"""Gopher's repetition rules, compiled; pipelines/quality/repetition.py defines the metrics."""

import numpy as np

from pipelines.compiled import kernel, kernel_in_place
from pipelines.quality.compiled.lines import Codes, Kinds, Places, count_repeats
from pipelines.quality.compiled.ngrams import datatrove_shares, paper_shares
from pipelines.quality.compiled.words import character_kinds, is_space
from pipelines.quality.profile import Bounds
from pipelines.quality.repetition import ratio
from pipelines.quality.words import DATATROVE, SPACES, MeasuredText

_LINE_FEED = np.uint32(0x0A)


def measure_datatrove(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    """Return the text and what gopher-repetition@datatrove measures in it."""
    codes = text.codes
    paragraphs, lines = _counts(codes, stripped=False)
    return text, (
        ratio(paragraphs[1], paragraphs[0]),
        ratio(paragraphs[3], len(codes)),
        ratio(lines[1], lines[0]),
        ratio(lines[3], len(codes)),
        *datatrove_shares(text.spans(DATATROVE), len(codes)),
    )


def measure_paper(text: MeasuredText, _: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
    """Return the text and what gopher-repetition@paper measures in it."""
    paragraphs, lines = _counts(text.codes, stripped=True)
    return text, (
        ratio(paragraphs[1], paragraphs[0]),
        ratio(paragraphs[3], paragraphs[2]),
        ratio(lines[1], lines[0]),
        ratio(lines[3], lines[2]),
        *paper_shares(text.spans(SPACES)),
    )


def _counts(codes: Codes, *, stripped: bool) -> list[list[int]]:
    """Return counts of paragraphs and lines, and of those seen before; of characters in either."""
    counts = np.empty((2, 4), np.int64)
    _count_parts(codes, character_kinds(), stripped, counts)
    return counts.tolist()


@kernel
def _count_parts(codes: Codes, kinds: Kinds, stripped: bool, counts: Places) -> None:
    """Count paragraphs, and then lines: the parts between runs of two line feeds, or of one.

    Args:
        codes: Code points of a text.
        kinds: See character_kinds().
        stripped: Whether parts are taken without white space around them, and only if something is
            left; otherwise the paragraphs are those of the text without white space around it.
        counts: int64[2, 4]: takes parts, those seen before, characters of either.
    """
    starts = np.empty(len(codes) // 2 + 2, np.int64)
    ends = np.empty(len(codes) // 2 + 2, np.int64)
    for row in range(2):
        start, end = _stripped(codes, kinds, 0, len(codes)) if row == 0 else (0, len(codes))
        num_parts = _split(codes[:end], start, 2 - row, starts, ends)
        if stripped:
            num_parts = _strip(codes, kinds, num_parts, starts, ends)
        repeats = repeated_chars = 0
        if num_parts > 1:
            repeats, repeated_chars = count_repeats(codes, starts[:num_parts], ends[:num_parts])
        counts[row, 0], counts[row, 1] = num_parts, repeats
        counts[row, 2], counts[row, 3] = 0, repeated_chars
        for part in range(num_parts):
            counts[row, 2] += ends[part] - starts[part]


@kernel_in_place
def _split(codes: Codes, start: int, num_feeds: int, starts: Places, ends: Places) -> int:
    """Write the parts of a text between runs of so many line feeds or more; return how many."""
    num_parts = feeds = 0
    starts[0] = start
    for place in range(start, len(codes)):
        if codes[place] == _LINE_FEED:
            feeds += 1
            continue
        if feeds >= num_feeds:
            ends[num_parts] = place - feeds
            num_parts += 1
            starts[num_parts] = place
        feeds = 0
    if feeds >= num_feeds:
        ends[num_parts] = len(codes) - feeds
        num_parts += 1
        starts[num_parts] = len(codes)
    ends[num_parts] = len(codes)
    return num_parts + 1


@kernel_in_place
def _strip(codes: Codes, kinds: Kinds, num_parts: int, starts: Places, ends: Places) -> int:
    """Take white space off the ends of parts, leave out empty ones, and return how many stay."""
    kept = 0
    for part in range(num_parts):
        start, end = _stripped(codes, kinds, starts[part], ends[part])
        if start < end:
            starts[kept], ends[kept] = start, end
            kept += 1
    return kept


@kernel_in_place
def _stripped(codes: Codes, kinds: Kinds, start: int, end: int) -> tuple[int, int]:
    """Return a range without white space around it."""
    while start < end and is_space(kinds, codes[start]):
        start += 1
    while start < end and is_space(kinds, codes[end - 1]):
        end -= 1
    return start, end
