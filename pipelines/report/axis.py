"""Where a value of the histograms' grid stands on the axis of a chart.

Shares get a linear axis, everything else a logarithmic one with a separate place for 0. All cells
of an axis have the same width, so a bar's height alone says how many documents there are.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipelines.segments.histograms import PER_OCTAVE, PER_UNIT, Histogram

MOST_CELLS = 80
_ENDS = (0.2, 0.5, 1.0)
_GAP, _SHARES_GAP = 2, 0.08
"""Between an axis and the separate place beside it: cells; for shares a part of the axis."""

_MOST_OUTSIDE = 0.01
"""Share of the documents that may lie beyond an axis from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Cells in a row, each for one or more neighbouring bins of the grid."""

    logarithmic: bool
    first: int
    """Leftmost cell of the grid (1 / PER_UNIT, or an eighth of an octave)."""
    last: int
    merged: int
    """Cells of the grid in one cell of the axis."""
    beside: bool
    """There is a separate place: left for 0 (logarithmic), right for what is above 1 (shares)."""

    @property
    def cells(self) -> int:
        """Width in cells, with the separate place."""
        return self._own + (1 + self._gap if self.beside else 0)

    @property
    def _own(self) -> int:
        return self.last // self.merged - self.first // self.merged + 1

    @property
    def _gap(self) -> int:
        # Shares have their last figure below the end of the axis, next to "> 1".
        return _GAP if self.logarithmic else max(_GAP, round(_SHARES_GAP * self._own))

    @property
    def origin(self) -> int:
        """The cell at which the axis itself begins."""
        return 1 + _GAP if self.beside and self.logarithmic else 0

    def cell(self, number: int) -> int:
        """Return the cell of a bin of the grid."""
        if self.logarithmic:
            if number == 0:
                return 0
            return self.origin + _octave_cell(number) // self.merged - self.first // self.merged
        return number // self.merged if number <= self.last else self.cells - 1

    def place(self, value: float) -> float:
        """Return where a value stands, in cells from the left."""
        end = self.origin + self._own
        if not self.logarithmic:
            return min(value * PER_UNIT / self.merged, end)
        if value <= 0:
            return 0.0
        offset = math.log2(value) * PER_OCTAVE / self.merged - self.first // self.merged
        return min(max(self.origin + offset, self.origin), end)

    def ticks(self) -> list[float]:
        """Return the values to write below the axis."""
        if not self.logarithmic:
            end = min(self.last + 1, PER_UNIT) / PER_UNIT
            return [0.0, end / 2, end]
        low, high = self.first / PER_OCTAVE, (self.last + 1) / PER_OCTAVE
        for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
            values = [step * 10.0**power for power in range(-9, 19) for step in steps]
            values = [value for value in values if low <= math.log2(value) <= high]
            if len(values) > 2:  # noqa: PLR2004  two do not show that an axis is logarithmic
                return values
        # A narrow axis, in which hardly a round number lies, shows where it begins and ends.
        return values if len(values) > 1 else sorted({2**low, *values, 2**high})


def axis_of(histograms: Sequence[Histogram], bounds: Iterable[float]) -> Axis:
    """Return the axis for some histograms, wide enough for the bounds of rules too."""
    bins = sorted({int(number) for counts in histograms for number in counts})
    bounds = tuple(bounds)
    rows = sum(sum(counts.values()) for counts in histograms)
    above = sum(
        counts[number] for counts in histograms for number in counts if int(number) > PER_UNIT
    )
    if above <= _MOST_OUTSIDE * rows and max(bounds, default=0) <= 1:
        used = [(number + 1) / PER_UNIT for number in bins if number < PER_UNIT]
        full = 1.0 if PER_UNIT in bins else 0.0
        widest = max([full, *used, *bounds], default=0)
        end = next(end for end in _ENDS if end >= widest)
        last = PER_UNIT if end == 1 else round(end * PER_UNIT) - 1
        return Axis(logarithmic=False, first=0, last=last, merged=1, beside=above > 0)
    cells = [_octave_cell(number) for number in bins if number]
    cells += [math.floor(math.log2(bound) * PER_OCTAVE) for bound in bounds if bound > 0]
    first, last = min(cells), max(cells)
    merged = 1
    while (last - first) // merged >= MOST_CELLS:
        merged *= 2
    return Axis(logarithmic=True, first=first, last=last, merged=merged, beside=0 in bins)


def _octave_cell(number: int) -> int:
    """Return the eighth of an octave, counted from 1, in which a bin of the grid begins."""
    if number > PER_UNIT:
        return number - PER_UNIT - 1
    return math.floor(math.log2(number / PER_UNIT) * PER_OCTAVE)
