"""Where a value of the histograms' grid stands on the axis of a picture.

Shares get a linear axis, everything else a logarithmic one with a separate place for 0. All cells
of an axis have the same width, so a bar's height alone says how many documents there are.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipelines.report.formats import tick
from pipelines.segments.histograms import PER_OCTAVE, PER_UNIT

MOST_CELLS, MOST_TICKS = 80, 5
_ENDS = (0.2, 0.5, 1.0)
_STEP = 10
"""Cells of which each end is a multiple."""
_APART = 0.08
"""Between an axis and the separate place beside it: a part of the axis, with room for two ticks."""

_MOST_OUTSIDE = 0.01
"""Share of the documents that may lie beyond an axis from 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Cells in a row: hundredths, or one or more eighths of an octave."""

    logarithmic: bool
    first: int = 0
    """Leftmost cell, counted from 0, or from 1 if the axis is logarithmic."""
    own: int
    """Cells without the separate place."""
    merged: int = 1
    """Eighths of an octave in a cell."""
    beside: bool
    """There is a separate place: left for 0 (logarithmic), right for what is above 1 (shares)."""

    @property
    def cells(self) -> int:
        """Width in cells, with the separate place."""
        return self.own + self._outside

    @property
    def _outside(self) -> int:
        return 2 + round(_APART * self.own) if self.beside else 0

    def place(self, value: float) -> float:
        """Return where a value stands, in cells from the left."""
        if not self.logarithmic:
            if self.beside and value > 1:
                return self.cells - 0.5
            return min(value * PER_UNIT, self.own)
        if value <= 0:
            return 0.5 if self.beside else 0.0
        offset = math.log2(value) * PER_OCTAVE / self.merged - self.first
        return self._outside + min(max(offset, 0.0), self.own)

    def ticks(self) -> dict[float, str]:
        """Return what to write below the axis, by place."""
        if self.logarithmic:
            beside = {0.5: "0"}
            low, high = (
                2 ** (cell * self.merged / PER_OCTAVE)
                for cell in (self.first, self.first + self.own)
            )
            values = _round_numbers(low, high)
        else:
            beside = {self.cells - 0.5: "> 1"}
            end = self.own // _STEP * _STEP / PER_UNIT
            values = [0.0, end / 2, end]
        ticks = {self.place(value): tick(value) for value in values}
        return {**ticks, **beside} if self.beside else ticks


def _round_numbers(low: float, high: float) -> list[float]:
    """Return the few roundest numbers in a range; its ends if there is hardly one."""
    values: list[float] = []
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
        values = [step * 10.0**power for power in range(-9, 19) for step in steps]
        values = [value for value in values if low <= value <= high]
        if len(values) > 2:  # noqa: PLR2004  two do not show that an axis is logarithmic
            return values[:: -(-len(values) // MOST_TICKS)]
    return values if len(values) > 1 else [low, high]


def axis_of(counts: Mapping[float, int], bounds: Iterable[float]) -> Axis:
    """Return the axis for some values, wide enough for the bounds of rules too.

    Args:
        counts: How many documents have each value.
        bounds: The bounds.
    """
    bounds = tuple(bounds)
    above = sum(number for value, number in counts.items() if value > 1)
    if above <= _MOST_OUTSIDE * sum(counts.values()) and max(bounds, default=0) <= 1:
        widest = max((value for value in (*counts, *bounds) if value <= 1), default=0)
        end = next(end for end in _ENDS if end >= widest)
        own = round(end * PER_UNIT) + (1 if end in counts else 0)  # a cell for the end itself
        return Axis(logarithmic=False, own=own, beside=above > 0)
    steps = [math.floor(math.log2(value) * PER_OCTAVE) for value in (*counts, *bounds) if value > 0]
    merged = (max(steps) - min(steps)) // MOST_CELLS + 1
    first, last = min(steps) // merged, max(steps) // merged
    return Axis(
        logarithmic=True, first=first, own=last - first + 1, merged=merged, beside=0 in counts
    )
