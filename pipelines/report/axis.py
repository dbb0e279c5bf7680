"""Axes of the report's pictures, which give the place of each value of the histograms' grid.

Shares get a linear axis; all remaining values get a logarithmic axis. All cells of an axis have the
same width (hundredths, or one or more eighths of an octave), so the height of a bar alone shows how
many documents there are. Values that do not fit the axis have a separate place: values above 1 are
to the right of shares, and 0 is to the left of a logarithmic axis.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pipelines.report.formats import tick
from pipelines.segments.histograms import PER_OCTAVE, PER_UNIT

MAX_CELLS, MAX_TICKS = 80, 5
_ENDS = (0.2, 0.5, 1.0)
_STEP = 10
"""The last tick of a linear axis is at a multiple of this number of cells."""
_APART = 0.08
"""The gap between an axis and the separate place, as a share of the axis; two ticks fit in it."""

_MAX_OUTSIDE = 0.01
"""The maximum share of documents with values above 1 for which the axis ends at 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis, divided into cells."""

    cells: int
    """The width in cells, including the separate place."""
    place: Callable[[float], float]
    """Returns the place of a value, in cells from the left."""
    ticks: Mapping[float, str]
    """The texts below the axis, by place."""


def axis_of(counts: Mapping[float, int], bounds: Iterable[float]) -> Axis:
    """Return an axis for some values that also has room for the bounds of rules.

    Args:
        counts: The number of documents by value.
        bounds: The bounds.
    """
    values = [*counts, *bounds]
    above = sum(number for value, number in counts.items() if value > 1)
    within = above <= _MAX_OUTSIDE * sum(counts.values())
    if within and all(value <= 1 for value in values[len(counts) :]):
        widest = max((value for value in values if value <= 1), default=0)
        return _linear(next(end for end in _ENDS if end >= widest), counts, beside=above > 0)
    return _logarithmic([value for value in values if value > 0], beside=0 in counts)


def _linear(end: float, counts: Mapping[float, int], *, beside: bool) -> Axis:
    """Return an axis of shares from 0 to `end`; `end` gets its own cell if a value equals `end`."""
    own = round(end * PER_UNIT) + (1 if end in counts else 0)
    cells = own + (_outside(own) if beside else 0)

    def place(value: float) -> float:
        return cells - 0.5 if beside and value > 1 else min(value * PER_UNIT, own)

    last = own // _STEP * _STEP / PER_UNIT
    ticks = {place(value): tick(value) for value in (0.0, last / 2, last)}
    return Axis(cells=cells, place=place, ticks=ticks | ({cells - 0.5: "> 1"} if beside else {}))


def _logarithmic(values: Iterable[float], *, beside: bool) -> Axis:
    """Return a logarithmic axis for values above 0."""
    steps = [math.floor(math.log2(value) * PER_OCTAVE) for value in values]
    merged = (max(steps) - min(steps)) // MAX_CELLS + 1
    first, last = min(steps) // merged, max(steps) // merged
    own = last - first + 1
    outside = _outside(own) if beside else 0

    def place(value: float) -> float:
        if value <= 0:
            return 0.5 if beside else 0.0
        offset = math.log2(value) * PER_OCTAVE / merged - first
        return outside + min(max(offset, 0.0), own)

    low, high = (2 ** (cell * merged / PER_OCTAVE) for cell in (first, first + own))
    ticks = {place(value): tick(value) for value in _round_numbers(low, high)}
    return Axis(cells=outside + own, place=place, ticks=ticks | ({0.5: "0"} if beside else {}))


def _outside(own: int) -> int:
    """Return the number of cells for the separate place and the gap of an axis of `own` cells."""
    return 2 + round(_APART * own)


def _round_numbers(low: float, high: float) -> list[float]:
    """Return a few round numbers in a range; the ends of the range if there are fewer than two."""
    values: list[float] = []
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
        values = [step * 10.0**power for power in range(-9, 19) for step in steps]
        values = [value for value in values if low <= value <= high]
        if len(values) > 2:  # noqa: PLR2004  two do not show that an axis is logarithmic
            return values[:: -(-len(values) // MAX_TICKS)]
    return values if len(values) > 1 else [low, high]
