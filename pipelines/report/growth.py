"""How a dataset grew: its generations over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from pipelines.report.pictures import LEAST_HEIGHT, Picture

NEWEST, MOST_ROWS = 12, 500
"""Generations that the table shows at once, and all that it shows."""

FEWEST_CELLS, MOST_CELLS = 20, 80
"""Equal parts of the time from the first generation to the last, each with a bar."""

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The generations of a dataset."""

    rows: Sequence[_Row]
    """As report.json has them, the first one first."""
    timed: Sequence[_Row]
    """Those whose time is known."""
    watched: Sequence[_Row]
    """Those of them that a stream made."""

    @property
    def newest(self) -> Sequence[_Row]:
        """The last ones, the latest first."""
        return self.rows[: -NEWEST - 1 : -1]

    @property
    def older(self) -> Sequence[_Row]:
        """Those before, as far as they are shown."""
        return self.rows[::-1][NEWEST:MOST_ROWS]

    @property
    def period(self) -> str:
        """When they were finished."""
        moments = sorted(map(moment, self.timed))
        return f"from {moments[0]} to {moments[-1]} UTC" if moments else "at unknown times"

    def total(self, name: str) -> int:
        """Return the sum of a figure of all generations."""
        return sum(row.get(name, 0) for row in self.rows)

    def bars(self, *, in_all: bool = False, **figures: str) -> Picture:
        """Return the picture of some figures over time; two generations or more have a time.

        Of generations that share a cell figures are added up, and of lags the longest is taken.

        Args:
            in_all: A cell also has what all before it have, and generations without a time.
            figures: Names of figures, such as "documents" or "worst", by kind of bar.
        """
        moments = [datetime.fromisoformat(row["finished"]).astimezone(UTC) for row in self.timed]
        start, end = min(moments), max(moments)
        seconds = max((end - start).total_seconds(), 1)
        cells = min(max(4 * len(moments), FEWEST_CELLS), MOST_CELLS)
        bars: dict[str, list[float]] = {}
        for kind, name in figures.items():
            values = bars[kind] = [0.0] * cells
            for row, finished in zip(self.timed, moments, strict=True):
                part = (finished - start).total_seconds() / seconds
                cell = min(int(part * cells), cells - 1)
                if name in row.get("lag", {}):
                    values[cell] = max(values[cell], row["lag"][name])
                else:
                    values[cell] += row.get(name, 0)
            if in_all:
                values[0] += self.total(name) - sum(values)
                bars[kind] = [*accumulate(values)]
        top = max(map(max, bars.values()))
        return Picture(
            cells=cells,
            bars={
                kind: {
                    cell: max(100 * value / top, LEAST_HEIGHT)
                    for cell, value in enumerate(values)
                    if value
                }
                for kind, values in bars.items()
            },
            top=top,
            ticks={0: f"{start:%Y-%m-%d %H:%M}", cells: f"{end:%Y-%m-%d %H:%M}"},
        )


def growth(report: Mapping[str, Any]) -> Growth | None:
    """Return how a dataset grew; None if it has one generation.

    Args:
        report: What report.json holds.
    """
    rows: Sequence[_Row] = report.get("generations", [])
    if len(rows) < 2:  # noqa: PLR2004  one has no history
        return None
    timed = [row for row in rows if "finished" in row]
    return Growth(rows=rows, timed=timed, watched=[row for row in timed if "lag" in row])


def moment(row: _Row) -> str:
    """Return when a generation was finished, such as "2026-11-22 10:51:20", or a dash."""
    if "finished" not in row:
        return "–"
    return f"{datetime.fromisoformat(row['finished']).astimezone(UTC):%Y-%m-%d %H:%M:%S}"
