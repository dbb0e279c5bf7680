"""FineWeb's own rules as compiled loops; pipelines/quality/fineweb.py defines the metrics."""

from functools import cache

import numpy as np

from pipelines.compiled import kernel
from pipelines.quality.compiled.lines import Codes, Kinds, character_bits, count_repeats, matching
from pipelines.quality.profile import Bounds, Measure
from pipelines.quality.punctuation import TERMINAL
from pipelines.quality.repetition import ratio
from pipelines.quality.words import MeasuredText

_SPACE, _TERMINAL = 1, 2
_LINE_FEED = 0x0A


@cache
def line_kinds() -> Kinds:
    """Return what `count_lines` asks of characters."""
    return character_bits(matching(r"\s"), TERMINAL)


@kernel
def count_lines(codes: Codes, kinds: Kinds, most: float) -> tuple[int, int, int, int, int]:
    """Return counts of the lines of a text that are not blank.

    Args:
        codes: Code points of the text.
        kinds: See line_kinds().
        most: Lines of at most this many characters are short; NaN for none.

    Returns:
        Lines; those that end a sentence; short ones; characters in those seen before; line breaks,
        of blank lines too.
    """
    num_breaks = 0
    for code in codes:
        num_breaks += code == _LINE_FEED
    starts, ends = np.empty(num_breaks + 1, np.int64), np.empty(num_breaks + 1, np.int64)
    num_lines = num_ended = num_short = end = 0
    for _ in range(num_breaks + 1):
        start = first = end
        while first < len(codes) and codes[first] != _LINE_FEED and kinds[codes[first]] & _SPACE:
            first += 1
        end = first
        while end < len(codes) and codes[end] != _LINE_FEED:
            end += 1
        if end > first:
            starts[num_lines], ends[num_lines] = start, end
            num_lines += 1
            num_ended += kinds[codes[end - 1]] & _TERMINAL > 0
            num_short += end - start <= most
        end += 1
    _, num_chars = count_repeats(codes, starts[:num_lines], ends[:num_lines])
    return num_lines, num_ended, num_short, num_chars, num_breaks


def measure_words(kind: str) -> Measure:
    """Return the measure of the variant that counts words of this kind."""

    def measure(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
        most = float(bounds["short_line_chars"])
        num_lines, ended, short, repeated, breaks = count_lines(text.codes, line_kinds(), most)
        return text, (
            ratio(ended, num_lines),
            ratio(short, num_lines),
            ratio(repeated, len(text.text) - breaks),
            ratio(breaks, text.num_words(kind)),
        )

    return measure
