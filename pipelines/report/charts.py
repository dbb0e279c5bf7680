"""Histograms as pictures: kept upwards, dropped downwards, the bounds of rules as lines."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.report.axis import Axis, axis_of
from pipelines.report.figures import amount, share, short, tick
from pipelines.report.markup import Markup, escaped, joined, tag
from pipelines.segments.histograms import Histogram, edges_of
from pipelines.segments.rows import DROPPED, KEPT

WIDTH, HEIGHT = 320, 96
_MARGIN, _ROW, _FOOT = 6, 12, 16
_LETTER = 6.6
"""Width of a letter of a label, about."""
_CUT = 4
"""A bar so many times taller than the next is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A line in a chart."""

    value: float
    label: str


def chart(counts: Mapping[str, Histogram], bounds: Sequence[Bound], *, name: str) -> Markup:
    """Return a histogram of what was kept and dropped, as an SVG.

    A bar's height is the share among the kept, or the dropped, documents.

    Args:
        counts: By verdict; not all of them empty.
        bounds: Lines to draw.
        name: What is counted, for readers that cannot see.
    """
    shares = {verdict: _shares(counts.get(verdict, {})) for verdict in (KEPT, DROPPED)}
    axis = axis_of([counts.get(KEPT, {}), counts.get(DROPPED, {})], [b.value for b in bounds])
    bars = {verdict: _by_cell(found, axis) for verdict, found in shares.items()}
    most = _most(list(bars.values()))
    up, down = (min(max(bars[verdict].values(), default=0), most) for verdict in (KEPT, DROPPED))
    labels, rows = _labels(bounds, axis)
    top = 4 + rows * _ROW
    base = top + HEIGHT * up / (up + down)
    scale = HEIGHT / (up + down)
    return tag(
        "svg",
        *_bars(bars[KEPT], axis, base=base, scale=-scale, most=most, kind=KEPT),
        *_bars(bars[DROPPED], axis, base=base, scale=scale, most=most, kind=DROPPED),
        tag("path", class_="axis", d=f"M{_x(axis, 0)} {base:.1f}H{_x(axis, axis.cells)}"),
        *_ticks(axis, y=top + HEIGHT + _FOOT - 4),
        *(_line(bound, axis, top=top, y=top - 3 - row * _ROW) for bound, row in labels),
        viewBox=f"0 0 {WIDTH} {top + HEIGHT + _FOOT}",
        role="img",
        aria_label=f"Histogram of {name}: {caption(counts)}",
    )


def caption(counts: Mapping[str, Histogram]) -> str:
    """Return the number, the median and the range of the kept and the dropped in words."""
    told = []
    for verdict in (KEPT, DROPPED):
        if found := counts.get(verdict, {}):
            low, middle, high = (quantile(found, part) for part in (0.05, 0.5, 0.95))
            reach = "" if low == high else f", 90 % from {short(low)} to {short(high)}"
            rows = amount(sum(found.values()))
            told.append(f"{rows} {verdict}: median {short(middle)}{reach}")
    return "; ".join(told)


def quantile(counts: Histogram, part: float) -> float:
    """Return a value with about this part of the documents below: the middle of its bin.

    Where every bin holds a whole number, the figure is taken to be one.
    """
    bins = sorted(map(int, counts))
    left = part * sum(counts.values())
    at = 0
    while at < len(bins) - 1 and (left := left - counts[str(bins[at])]) > 0:
        at += 1
    low, high = edges_of(bins[at])
    if bins[at] == 0:  # most of what is below 0.01 is 0
        return 0.0
    return float(round((low + high) / 2)) if all(map(_holds_whole, bins)) else (low + high) / 2


def _holds_whole(number: int) -> bool:
    low, high = edges_of(number)
    return low == high or math.ceil(low) < high


def _shares(counts: Histogram) -> dict[int, float]:
    total = sum(counts.values())
    return {int(number): rows / total for number, rows in counts.items()}


def _by_cell(shares: Mapping[int, float], axis: Axis) -> dict[int, float]:
    cells: dict[int, float] = {}
    for number in sorted(shares):
        cell = axis.cell(number)
        cells[cell] = cells.get(cell, 0.0) + shares[number]
    return cells


def _x(axis: Axis, cells: float) -> str:
    return f"{_MARGIN + (WIDTH - 2 * _MARGIN) * cells / axis.cells:.1f}"


def _most(bars: Sequence[Mapping[int, float]]) -> float:
    """Return the share at which bars are cut off, so that one does not hide all others."""
    tallest = max(max(each.values(), default=0.0) for each in bars)
    others = [sorted(each.values())[-2] for each in bars if len(each) > 1]
    return 2 * max(others) if others and tallest > _CUT * max(others) else tallest


def _bars(
    bars: Mapping[int, float], axis: Axis, *, base: float, scale: float, most: float, kind: str
) -> list[Markup]:
    """Return bars from the base line, upwards where the scale (points of a share) is negative."""
    tips = {cell: base + _tall(min(part, most) * scale) for cell, part in bars.items()}
    path = "".join(
        f"M{_x(axis, cell)} {base:.1f}V{tip:.1f}H{_x(axis, cell + 1)}V{base:.1f}Z"
        for cell, tip in tips.items()
    )
    inward = 7 if scale < 0 else -7
    cut = [
        _cut(axis, cell, y=tips[cell] + inward, label=share(part, 1))
        for cell, part in bars.items()
        if part > most
    ]
    return [tag("path", class_=kind, d=path), *cut]


def _cut(axis: Axis, cell: int, *, y: float, label: str) -> Markup:
    """Return what marks a bar that is cut off: a gap near its tip, and its share beside it."""
    left, right = (float(_x(axis, cell + side)) for side in (0, 1))
    here = right < WIDTH / 2
    return joined(
        tag("path", class_="gap", d=f"M{left - 1:.1f} {y + 2:.1f}L{right + 1:.1f} {y - 2:.1f}"),
        tag(
            "text",
            label,
            x=f"{right + 4 if here else left - 4:.1f}",
            y=f"{y + 3:.1f}",
            text_anchor="start" if here else "end",
        ),
    )


def _tall(height: float) -> float:
    """Return the height of a bar, enough to be seen."""
    return max(height, 0.7) if height > 0 else min(height, -0.7)


def _ticks(axis: Axis, *, y: float) -> list[Markup]:
    places = {axis.place(value): tick(value) for value in axis.ticks()}
    if axis.beside:
        places[0.5 if axis.logarithmic else axis.cells - 0.5] = "0" if axis.logarithmic else "> 1"
    return [
        tag("text", escaped(label), x=_x(axis, at), y=y, text_anchor=_anchor(at, axis))
        for at, label in sorted(places.items())
    ]


def _anchor(at: float, axis: Axis) -> str:
    edge = 0.04 * axis.cells
    return "start" if at < edge else "end" if at > axis.cells - edge else "middle"


def _labels(bounds: Sequence[Bound], axis: Axis) -> tuple[list[tuple[Bound, int]], int]:
    """Return each bound with the row of its label, so that no two overlap, and how many rows."""
    ends: list[float] = []
    placed = []
    for bound in sorted(bounds, key=lambda bound: (bound.value, bound.label)):
        at = float(_x(axis, axis.place(bound.value)))
        width = _LETTER * len(bound.label)
        start = min(max(at - width / 2, 0), WIDTH - width)
        row = next((row for row, end in enumerate(ends) if end < start), len(ends))
        ends[row : row + 1] = [start + width + _LETTER]
        placed.append((bound, row))
    return placed, len(ends)


def _line(bound: Bound, axis: Axis, *, top: float, y: float) -> Markup:
    at = _x(axis, axis.place(bound.value))
    width = _LETTER * len(bound.label)
    middle = min(max(float(at), width / 2), WIDTH - width / 2)
    return joined(
        tag("path", class_="mark", d=f"M{at} {y + 2:.1f}V{top + HEIGHT}"),
        tag(
            "text",
            bound.label,
            class_="mark",
            x=f"{middle:.1f}",
            y=f"{y:.1f}",
            text_anchor="middle",
        ),
    )
