"""FineWeb's own rules by compiled loops; see pipelines/quality/fineweb.py."""

import numpy as np
import numpy.typing as npt

from pipelines.compiled import kernel
from pipelines.quality.compiled.lines import character_bits, count_repeats, matching
from pipelines.quality.profile import Bounds, Measure
from pipelines.quality.punctuation import TERMINAL
from pipelines.quality.repetition import ratio
from pipelines.quality.words import MeasuredText

_SPACE, _TERMINAL = 1, 2
BITS = character_bits(matching(r"\s"), TERMINAL)
"""What `count_lines` looks up characters in."""

_LINE_BREAK = 10


@kernel
def count_lines(
    codes: npt.NDArray[np.uint32], bits: npt.NDArray[np.uint8], most: float
) -> tuple[int, int, int, int, int]:
    """Return counts of the lines of a text that are not blank.

    Args:
        codes: Code points of the text.
        bits: BITS.
        most: Lines of at most this many characters are short; NaN for none.

    Returns:
        Lines; those that end a sentence; short ones; characters in those seen before; line breaks,
        of blank lines too.
    """
    num_breaks = 0
    for code in codes:
        num_breaks += code == _LINE_BREAK
    starts, ends = np.empty(num_breaks + 1, np.int64), np.empty(num_breaks + 1, np.int64)
    num_lines = num_ended = num_short = end = 0
    for _ in range(num_breaks + 1):
        start = first = end
        while first < len(codes) and codes[first] != _LINE_BREAK and bits[codes[first]] & _SPACE:
            first += 1
        end = first
        while end < len(codes) and codes[end] != _LINE_BREAK:
            end += 1
        if end > first:
            starts[num_lines], ends[num_lines] = start, end
            num_lines += 1
            num_ended += bits[codes[end - 1]] & _TERMINAL > 0
            num_short += end - start <= most
        end += 1
    _, num_chars = count_repeats(codes, starts[:num_lines], ends[:num_lines])
    return num_lines, num_ended, num_short, num_chars, num_breaks


def measure_words(kind: str) -> Measure:
    """Return the measure of the variant that counts words of this kind."""

    def measure(text: MeasuredText, bounds: Bounds) -> tuple[MeasuredText, tuple[float, ...]]:
        most = float(bounds["short_line_chars"])
        num_lines, ended, short, repeated, breaks = count_lines(text.codes, BITS, most)
        return text, (
            ratio(ended, num_lines),
            ratio(short, num_lines),
            ratio(repeated, len(text.text) - breaks),
            ratio(breaks, len(text.spans(kind).starts)),
        )

    return measure
