"""An axis of time: cells of equal length in a row, and where a day or an hour is written below."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(_MINUTE * number for number in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * number for number in (1, 2, 3, 6, 12)),
    *(_DAY * number for number in (1, 2, 5, 10, 30, 90, 180, 365)),
)
_MOST_TICKS = 3

FEWEST_CELLS, MOST_CELLS = 20, 80


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAxis:
    """Cells from the first of some moments to the last; moments are seconds since 1970, UTC."""

    start: float
    end: float
    """Later than the start."""
    cells: int

    @classmethod
    def of(cls, moments: Sequence[float]) -> "TimeAxis":
        """Return the axis of some moments, with more cells for more of them."""
        start, end = min(moments), max(moments)
        cells = min(max(4 * len(moments), FEWEST_CELLS), MOST_CELLS)
        return cls(start=start, end=max(end, start + 1), cells=cells)

    def cell(self, moment: float) -> int:
        """Return the cell of a moment."""
        return min(int(self.part(moment) * self.cells), self.cells - 1)

    def part(self, moment: float) -> float:
        """Return where a moment stands, 0 at the start and 1 at the end."""
        return (moment - self.start) / (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the parts at which something is written below the axis, and what."""
        step = next((step for step in _STEPS if self._count(step) <= _MOST_TICKS), None)
        if step is None:  # many years
            step = _DAY * 365 * math.ceil((self.end - self.start) / (_DAY * 365 * _MOST_TICKS))
        first = math.ceil(self.start / step)
        moments = [number * step for number in range(first, first + self._count(step))]
        return [(self.part(moment), _label(moment, step)) for moment in moments]

    def _count(self, step: int) -> int:
        return math.floor(self.end / step) - math.ceil(self.start / step) + 1


def _label(moment: float, step: int) -> str:
    time = datetime.fromtimestamp(moment, UTC)
    if step >= _DAY:
        return f"{time:%Y-%m-%d}"
    if moment % _DAY == 0:
        return f"{time:%m-%d}"
    return f"{time:%H:%M}" if step >= _MINUTE else f"{time:%H:%M:%S}"
