"""How a dataset grew: its generations along a time axis, as pictures, in words and in rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pipelines.report.charts import HEIGHT, MARGIN, Chart
from pipelines.report.formats import amount, duration, percent, whole
from pipelines.report.labels import WIDTH, Text, spaced
from pipelines.report.time_axis import TimeAxis

NEWEST, MOST_ROWS = 12, 500
"""Generations that the table shows at once, and all that it shows."""

_HEAD, _FOOT = 14, 16
_BASE = _HEAD + HEIGHT
_LEAST = 0.7
"""Points that what is not zero has at least, to be seen."""

_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A figure of the generations over time."""

    title: str
    caption: str
    """What the picture shows in words; it also is what those get who do not see it."""
    chart: Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The generations of a dataset."""

    period: str
    """When they were finished."""
    pictures: Sequence[Picture]
    newest: Sequence[_Row]
    """The last ones, the latest first, as report.json has them."""
    older: Sequence[_Row]
    """Those before."""
    count: int
    untimed: int
    """Generations whose time is not known."""

    @property
    def has_lag(self) -> bool:
        """Whether a stream made any of the shown ones."""
        return any("lag" in row for row in (*self.newest, *self.older))


def growth(report: Mapping[str, Any]) -> Growth | None:
    """Return how a dataset grew; None if it has one generation.

    Args:
        report: What report.json holds.
    """
    rows: Sequence[_Row] = report.get("generations", [])
    if len(rows) < 2:  # noqa: PLR2004  one has no history
        return None
    timed = [row for row in rows if "finished" in row]
    latest_first = rows[::-1]
    return Growth(
        period=_period(timed),
        pictures=[*_pictures(rows, timed)] if len(timed) > 1 else [],
        newest=latest_first[:NEWEST],
        older=latest_first[NEWEST:MOST_ROWS],
        count=len(rows),
        untimed=len(rows) - len(timed),
    )


def moment(row: _Row) -> str:
    """Return when a generation was finished, such as "2026-11-22 10:51:20", or a dash."""
    if "finished" not in row:
        return "–"
    return f"{datetime.fromisoformat(row['finished']).astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _period(rows: Sequence[_Row]) -> str:
    if not rows:
        return "at unknown times"
    first, last = (min(map(moment, rows)), max(map(moment, rows)))
    return f"from {first} to {last} UTC"


def _pictures(rows: Sequence[_Row], timed: Sequence[_Row]) -> Iterator[Picture]:
    """Yield the pictures of what there is any of."""
    axis = TimeAxis.of([_seconds(row) for row in timed])
    documents, tokens, read, known = (
        sum(row.get(name, 0) for row in rows) for name in ("documents", "tokens", "read", "known")
    )
    if documents:
        sums = _by_cell(timed, axis, lambda row: row["documents"], sum)
        yield Picture(
            title="New documents",
            caption=f"{whole(documents)} in all, {whole(rows[-1]['documents'])} of them the latest",
            chart=_bar_chart(axis, {"kept": sums}, amount),
        )
    if tokens:
        sums = _by_cell(timed, axis, lambda row: row["tokens"], sum)
        path = _steps(axis, sums, before=tokens - sum(sums.values()))
        yield Picture(
            title="Tokens of the dataset",
            caption=f"grew to {amount(tokens)}, by {amount(rows[-1]['tokens'])} with the latest",
            chart=_drawn(axis, {"kept": path}, amount(tokens)),
        )
    if known:
        sums = _by_cell(timed, axis, lambda row: row.get("known", 0), sum)
        yield Picture(
            title="Dropped as known",
            caption=f"{whole(known)} documents that an earlier generation has, "
            f"{percent(known, read)} of those read",
            chart=_bar_chart(axis, {"dropped": sums}, amount),
        )
    watched = [row for row in timed if "lag" in row]
    if watched:
        yield _lag(watched, axis)


def _lag(rows: Sequence[_Row], axis: TimeAxis) -> Picture:
    worst = _by_cell(rows, axis, lambda row: row["lag"]["worst"], max)
    median = _by_cell(rows, axis, lambda row: row["lag"]["median"], max)
    medians = [row["lag"]["median"] for row in rows]
    late = max(rows, key=lambda row: float(row["lag"]["worst"]))
    return Picture(
        title="Lag from arrival to commit",
        caption=f"medians from {_span(min(medians))} to {_span(max(medians))}; the worst, behind "
        f"them in grey, {_span(late['lag']['worst'])} in {late['name']}",
        chart=_bar_chart(axis, {"rest": worst, "kept": median}, _span),
    )


def _span(seconds: float) -> str:
    return duration(seconds / 3600)


def _seconds(row: _Row) -> float:
    return datetime.fromisoformat(row["finished"]).timestamp()


def _by_cell(
    rows: Iterable[_Row],
    axis: TimeAxis,
    figure: Callable[[_Row], float],
    merge: Callable[[Iterable[float]], float],
) -> dict[int, float]:
    """Return a figure of the generations that share a cell of the axis."""
    cells: dict[int, list[float]] = {}
    for row in rows:
        cells.setdefault(axis.cell(_seconds(row)), []).append(figure(row))
    return {cell: merge(cells[cell]) for cell in sorted(cells)}


def _bar_chart(
    axis: TimeAxis, values: Mapping[str, Mapping[int, float]], text: Callable[[float], str]
) -> Chart:
    """Return a picture of bars.

    Args:
        axis: The axis below them.
        values: By class of the bars, by cell.
        text: Writes the value that the full height stands for.
    """
    top = max(value for bars in values.values() for value in bars.values())
    paths = {
        name: "".join(
            f"M{_x(cell / axis.cells):.1f} {_BASE}V{_y(value, top):.1f}"
            f"H{_x((cell + 1) / axis.cells):.1f}V{_BASE}Z"
            for cell, value in bars.items()
            if value
        )
        for name, bars in values.items()
    }
    return _drawn(axis, paths, text(top))


def _steps(axis: TimeAxis, values: Mapping[int, float], *, before: float) -> str:
    """Return the area below what some values sum up to, from left to right, as a path."""
    top = before + sum(values.values())
    path = f"M{_x(0):.1f} {_BASE}V{_y(before, top):.1f}"
    for cell, value in values.items():
        before += value
        path += f"H{_x(cell / axis.cells):.1f}V{_y(before, top):.1f}"
    return f"{path}H{_x(1):.1f}V{_BASE}Z"


def _drawn(axis: TimeAxis, paths: Mapping[str, str], most: str) -> Chart:
    """Return a picture of some paths, with what its full height stands for in its corner."""
    return Chart(
        height=_BASE + _FOOT,
        bars=paths,
        cuts=(),
        axis=f"M{_x(0):.1f} {_BASE}H{_x(1):.1f}",
        ticks=[
            Text(most, MARGIN, _HEAD - 4, "start"),
            *spaced(Text(label, _x(part), _BASE + _FOOT - 4) for part, label in axis.ticks()),
        ],
        thresholds=(),
    )


def _x(part: float) -> float:
    return MARGIN + (WIDTH - 2 * MARGIN) * part


def _y(value: float, top: float) -> float:
    return _BASE - (max(HEIGHT * value / top, _LEAST) if value else 0)
