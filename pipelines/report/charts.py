"""Histograms as pictures: kept upwards, dropped downwards, the thresholds of rules as lines.

What is computed here is geometry, in points of the picture from its upper left corner.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipelines.report.axis import Axis, axis_of
from pipelines.report.formats import amount, percent, short, tick
from pipelines.report.labels import WIDTH, Text, inside, spaced
from pipelines.segments.histograms import Histogram, edges_of
from pipelines.segments.rows import DROPPED, KEPT

HEIGHT = 96
"""What the bars take of the height."""
MARGIN = 6
"""Beside them on both sides."""
_LABEL_HEIGHT, _FOOT = 12, 16
_CUT = 4
"""A bar this many times taller than the next is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdLine:
    """A bound of a rule, drawn as a line."""

    value: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture: paths as SVG writes them, and texts."""

    height: float
    width: float = WIDTH
    bars: Mapping[str, str]
    """A path for all bars of a verdict."""
    cuts: Sequence[tuple[str, Text]]
    """A gap through each bar that is cut off, and its share beside it."""
    axis: str
    ticks: Sequence[Text]
    thresholds: Sequence[tuple[str, Text]]


def chart(counts: Mapping[str, Histogram], thresholds: Sequence[ThresholdLine]) -> Chart:
    """Return a histogram of what was kept and dropped.

    A bar's height is the share among the kept, or the dropped, documents.

    Args:
        counts: By verdict; not all of them empty.
        thresholds: Lines to draw.
    """
    histograms = [counts.get(verdict, {}) for verdict in (KEPT, DROPPED)]
    axis = axis_of(histograms, [threshold.value for threshold in thresholds])
    up, down = (_shares(histogram, axis) for histogram in histograms)
    limit = _limit([up, down])
    tallest = [min(max(shares.values(), default=0), limit) for shares in (up, down)]
    scale = HEIGHT / sum(tallest)
    lines = list(_lines(thresholds, axis))
    top = 4 + _LABEL_HEIGHT * len({row for *_, row in lines})
    base = top + scale * tallest[0]
    bars = {
        KEPT: list(_bars(up, axis, limit, base, -scale)),
        DROPPED: list(_bars(down, axis, limit, base, scale)),
    }
    return Chart(
        height=top + HEIGHT + _FOOT,
        bars={verdict: "".join(bar.path for bar in drawn) for verdict, drawn in bars.items()},
        cuts=[bar.cut() for drawn in bars.values() for bar in drawn if bar.share > limit],
        axis=f"M{_x(axis, 0):.1f} {base:.1f}H{_x(axis, axis.cells):.1f}",
        ticks=_ticks(axis, y=top + HEIGHT + _FOOT - 4),
        thresholds=[
            (
                f"M{x:.1f} {top - 1 - row * _LABEL_HEIGHT}V{top + HEIGHT}",
                Text(threshold.label, middle, top - 3 - row * _LABEL_HEIGHT),
            )
            for threshold, x, middle, row in lines
        ],
    )


def caption(counts: Mapping[str, Histogram]) -> str:
    """Return the number, the median and the range of the kept and the dropped in words."""
    parts = []
    for verdict in (KEPT, DROPPED):
        if histogram := counts.get(verdict, {}):
            low, median, high = (quantile(histogram, part) for part in (0.05, 0.5, 0.95))
            spread = "" if low == high else f", 90 % from {short(low)} to {short(high)}"
            rows = amount(sum(histogram.values()))
            parts.append(f"{rows} {verdict}: median {short(median)}{spread}")
    return "; ".join(parts)


def quantile(counts: Histogram, part: float) -> float:
    """Return a value with about this part of the documents below: the middle of its bin.

    If every bin holds a whole number, the value is taken to be one.
    """
    bins = sorted(map(int, counts))
    left = part * sum(counts.values())
    index = 0
    while index < len(bins) - 1 and (left := left - counts[str(bins[index])]) > 0:
        index += 1
    low, high = edges_of(bins[index])
    if bins[index] == 0:  # most of what is below 0.01 is 0
        return 0.0
    return float(round((low + high) / 2)) if all(map(_holds_whole, bins)) else (low + high) / 2


def _holds_whole(number: int) -> bool:
    low, high = edges_of(number)
    return low == high or math.ceil(low) < high


def _shares(counts: Histogram, axis: Axis) -> dict[int, float]:
    """Return the share of the documents in each cell of the axis."""
    rows = sum(counts.values())
    shares: dict[int, float] = {}
    for number in sorted(map(int, counts)):
        cell = axis.cell(number)
        shares[cell] = shares.get(cell, 0.0) + counts[str(number)] / rows
    return shares


def _x(axis: Axis, cells: float) -> float:
    return MARGIN + (WIDTH - 2 * MARGIN) * cells / axis.cells


def _limit(sides: Sequence[Mapping[int, float]]) -> float:
    """Return the share at which bars are cut off, so that one does not hide all others."""
    tallest = max(max(shares.values(), default=0.0) for shares in sides)
    second = max((sorted(shares.values())[-2] for shares in sides if len(shares) > 1), default=0)
    return 2 * second if tallest > _CUT * second > 0 else tallest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bar:
    """A bar from the base line to its tip."""

    left: float
    right: float
    base: float
    tip: float
    share: float

    @property
    def path(self) -> str:
        return f"M{self.left:.1f} {self.base:.1f}V{self.tip:.1f}H{self.right:.1f}V{self.base:.1f}Z"

    def cut(self) -> tuple[str, Text]:
        """Return what marks a bar that is cut off: a gap near its tip, and its share beside it."""
        y = self.tip + (7 if self.tip < self.base else -7)
        gap = f"M{self.left - 1:.1f} {y + 2:.1f}L{self.right + 1:.1f} {y - 2:.1f}"
        if self.right < WIDTH / 2:
            return gap, Text(percent(self.share, 1), self.right + 4, y + 3, "start")
        return gap, Text(percent(self.share, 1), self.left - 4, y + 3, "end")


def _bars(
    shares: Mapping[int, float], axis: Axis, limit: float, base: float, scale: float
) -> Iterator[_Bar]:
    """Yield bars, upwards where the scale (points of a whole) is negative, tall enough to see."""
    for cell, share in shares.items():
        height = max(min(share, limit) * abs(scale), 0.7)
        yield _Bar(
            left=_x(axis, cell),
            right=_x(axis, cell + 1),
            base=base,
            tip=base + math.copysign(height, scale),
            share=share,
        )


def _ticks(axis: Axis, *, y: float) -> list[Text]:
    ticks = [Text(tick(value), _x(axis, axis.place(value)), y) for value in axis.ticks()]
    if not axis.beside:
        return spaced(ticks)
    place, label = (0.5, "0") if axis.logarithmic else (axis.cells - 0.5, "> 1")
    return spaced(ticks, first=[Text(label, _x(axis, place), y)])


def _lines(
    thresholds: Iterable[ThresholdLine], axis: Axis
) -> Iterator[tuple[ThresholdLine, float, float, int]]:
    """Yield thresholds with x, that of the label's middle and the label's row, 0 the lowest.

    No two labels overlap.
    """
    ends: list[float] = []
    for threshold in sorted(thresholds, key=lambda line: (line.value, line.label)):
        x = _x(axis, axis.place(threshold.value))
        label = inside(Text(threshold.label, x, 0))
        left, right = label.span
        row = next((row for row, end in enumerate(ends) if end < left), len(ends))
        ends[row : row + 1] = [right + MARGIN]
        yield threshold, x, label.x, row
