"""Bars in a row, upwards and downwards: what a picture of the page shows.

The macro `picture` of templates/macros.html.j2 draws it: places are in cells from the left, heights
in per cent of the picture, so nothing here knows how large it will be.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.report.axis import Axis, axis_of
from pipelines.report.formats import amount, percent, short
from pipelines.segments.histograms import Histogram, edges_of
from pipelines.segments.rows import DROPPED, KEPT

MIN_HEIGHT = 0.7
"""Per cent that a bar of what is not nothing has, to be seen."""

_CUT = 4
"""A bar this many times taller than the next is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A text above a picture, in a row of its own."""

    text: str
    place: float
    kind: str
    """bound: of a line at its place; cut: of a bar that is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Bars on a base line."""

    cells: int
    """Width."""
    base: float = 100.0
    """Where the base line is, from the top."""
    bars: Mapping[str, Mapping[int, float]]
    """Heights by kind and cell, downwards below 0; later kinds precede earlier ones."""
    labels: Sequence[Label] = ()
    ticks: Mapping[float, str]
    """What is written below, by place."""


def histogram(counts: Mapping[str, Histogram], bounds: Sequence[tuple[float, str]]) -> Picture:
    """Return the picture of what was kept, upwards, and dropped, downwards.

    A bar's height is the share among the kept, or the dropped, documents.

    Args:
        counts: By verdict; not all of them empty.
        bounds: Values at which lines stand, with their labels.
    """
    kept, dropped = (_by_value(counts.get(verdict, {})) for verdict in (KEPT, DROPPED))
    both = {value: kept.get(value, 0) + dropped.get(value, 0) for value in {**kept, **dropped}}
    axis = axis_of(both, [bound for bound, _ in bounds])
    shares = {KEPT: _shares(kept, axis), DROPPED: _shares(dropped, axis)}
    limit = _limit(shares.values())
    up, down = (min(max(side.values(), default=0), limit) for side in shares.values())
    scale = 100 / (up + down)
    lines = [
        Label(text=text, place=axis.place(bound), kind="bound") for bound, text in sorted(bounds)
    ]
    cuts = [
        Label(text=f"{percent(share, 1)} {verdict}", place=cell + 0.5, kind="cut")
        for verdict, side in shares.items()
        for cell, share in side.items()
        if share > limit
    ]
    return Picture(
        cells=axis.cells,
        base=scale * up,
        bars={
            verdict: {
                cell: sign * max(min(share, limit) * scale, MIN_HEIGHT)
                for cell, share in shares[verdict].items()
            }
            for verdict, sign in ((KEPT, 1), (DROPPED, -1))
        },
        labels=[*lines, *cuts],
        ticks=axis.ticks,
    )


def caption(counts: Mapping[str, Histogram]) -> str:
    """Return the number, the median and the range of the kept and the dropped in words."""
    parts = []
    for verdict in (KEPT, DROPPED):
        if counted := counts.get(verdict, {}):
            low, median, high = (quantile(counted, part) for part in (0.05, 0.5, 0.95))
            spread = "" if low == high else f", 90 % from {short(low)} to {short(high)}"
            rows = amount(sum(counted.values()))
            parts.append(f"{rows} {verdict}: median {short(median)}{spread}")
    return "; ".join(parts)


def quantile(counts: Histogram, part: float) -> float:
    """Return a value with about this part of the documents below: the middle of its bin.

    If every bin holds a whole number, the value is taken to be one.
    """
    by_value = _by_value(counts)
    below = np.cumsum([*by_value.values()])
    value = [*by_value][np.searchsorted(below, part * below[-1])]
    return float(round(value)) if all(map(_holds_whole, map(int, counts))) else value


def _holds_whole(number: int) -> bool:
    low, high = edges_of(number)
    return low == high or math.ceil(low) < high


def _by_value(counts: Histogram) -> dict[float, int]:
    """Return how many documents are in each bin, by its middle, the smallest first."""
    return {_middle(number): counts[str(number)] for number in sorted(map(int, counts))}


def _middle(number: int) -> float:
    low, high = edges_of(number)
    return (low + high) / 2 if number else 0.0  # most of what is below 0.01 is 0


def _shares(counts: Mapping[float, int], axis: Axis) -> dict[int, float]:
    """Return the share of the documents in each cell of an axis."""
    rows, shares = sum(counts.values()), dict[int, float]()
    for value, number in counts.items():
        cell = int(axis.place(value))
        shares[cell] = shares.get(cell, 0.0) + number / rows
    return shares


def _limit(sides: Iterable[Mapping[int, float]]) -> float:
    """Return the share at which bars are cut off, so that one does not hide all others."""
    tallest = [sorted(shares.values(), reverse=True)[:2] for shares in sides]
    first = max(share for pair in tallest for share in pair[:1])
    second = max((share for pair in tallest for share in pair[1:]), default=0)
    return 2 * second if first > _CUT * second > 0 else first
