"""The content of the report's pictures: bars that go upwards and downwards from a base line.

The macro `picture` of templates/macros.html.j2 draws a picture. Places are in cells from the left,
and heights are in per cent of the picture, so this module does not know the picture's size.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipelines.report.axis import Axis, axis_of
from pipelines.report.formats import percent, short
from pipelines.segments.histograms import Histogram, edges_of
from pipelines.segments.rows import DROPPED, KEPT

MIN_HEIGHT = 0.7
"""The minimum height of a bar in per cent, so that it is visible."""

OTHER_LANGUAGES, EVERY_LANGUAGE = "every other language", "every language"
_LANGUAGE_NAMES = (OTHER_LANGUAGES, EVERY_LANGUAGE)
_MAX_NAMED = 12
"""The maximum number of characters for names of languages in the label of a line."""

_CUT = 4
"""A bar is cut off if it is this many times taller than the tallest other bar of its side."""


class Bound(NamedTuple):
    """The bound of a rule, drawn as a line."""

    value: float
    side: str
    """minimum or maximum."""
    languages: Sequence[str]
    """The languages that the bound applies to."""


class Summary(NamedTuple):
    """The number of documents with a verdict, and the median and central 90 % of their values."""

    verdict: str
    rows: int
    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A text above a picture; each text has its own row."""

    name: str
    """minimum or maximum, or the verdict of a bar that is cut off."""
    text: str
    place: float
    kind: str
    """bound for a line, cut for a bar that is cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Bars on a base line."""

    cells: int
    """The width in cells."""
    base: float = 100.0
    """The distance of the base line from the top, in per cent."""
    bars: Mapping[str, Mapping[int, float]]
    """The heights of bars by kind and cell; negative heights go downwards."""
    labels: Sequence[Label] = ()
    ticks: Mapping[float, str]
    """The texts below the picture, by place."""


def histogram(counts: Mapping[str, Histogram], bounds: Sequence[Bound]) -> Picture:
    """Return a picture with bars upwards for kept documents and downwards for dropped documents.

    The height of a bar is a share of the kept, or of the dropped, documents.

    Args:
        counts: The histograms by verdict; at least one is not empty.
        bounds: The bounds to draw as lines.
    """
    kept, dropped = (_by_value(counts.get(verdict, {})) for verdict in (KEPT, DROPPED))
    both = {value: kept.get(value, 0) + dropped.get(value, 0) for value in {**kept, **dropped}}
    axis = axis_of(both, [bound.value for bound in bounds])
    shares = {KEPT: _shares(kept, axis), DROPPED: _shares(dropped, axis)}
    limit = _limit(shares.values())
    up, down = (min(max(side.values(), default=0), limit) for side in shares.values())
    scale = 100 / (up + down)
    lines = [
        Label(name=bound.side, text=_text(bound), place=axis.place(bound.value), kind="bound")
        for bound in bounds
    ]
    cuts = [
        Label(name=verdict, text=percent(share, 1), place=cell + 0.5, kind="cut")
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


def _text(bound: Bound) -> str:
    """Return the text of a bound, with its languages if they are short."""
    named = ",".join(bound.languages)
    is_short = bound.languages[0] in _LANGUAGE_NAMES or len(named) > _MAX_NAMED
    return short(bound.value) if is_short else f"{short(bound.value)} {named}"


def summaries(counts: Mapping[str, Histogram]) -> Iterator[Summary]:
    """Yield the summaries of kept and of dropped documents, if there are any."""
    for verdict in (KEPT, DROPPED):
        if counted := counts.get(verdict, {}):
            low, median, high = (quantile(counted, part) for part in (0.05, 0.5, 0.95))
            yield Summary(verdict, sum(counted.values()), low, median, high)


def quantile(counts: Histogram, part: float) -> float:
    """Return the value below which about this part of the documents are: the middle of a bin.

    If every bin contains a whole number, the value is rounded to a whole number.
    """
    by_value = _by_value(counts)
    below = np.cumsum([*by_value.values()])
    value = [*by_value][np.searchsorted(below, part * below[-1])]
    return float(round(value)) if all(map(_holds_whole, map(int, counts))) else value


def _holds_whole(number: int) -> bool:
    low, high = edges_of(number)
    return low == high or math.ceil(low) < high


def _by_value(counts: Histogram) -> dict[float, int]:
    """Return the number of documents by the middle of their bin, the smallest first."""
    return {_middle(number): counts[str(number)] for number in sorted(map(int, counts))}


def _middle(number: int) -> float:
    low, high = edges_of(number)
    return (low + high) / 2 if number else 0.0  # most values below 0.01 are 0


def _shares(counts: Mapping[float, int], axis: Axis) -> dict[int, float]:
    """Return the share of the documents in each cell of an axis."""
    rows, shares = sum(counts.values()), dict[int, float]()
    for value, number in counts.items():
        cell = int(axis.place(value))
        shares[cell] = shares.get(cell, 0.0) + number / rows
    return shares


def _limit(sides: Iterable[Mapping[int, float]]) -> float:
    """Return the share at which bars are cut off, so that one bar does not flatten all others."""
    tallest = [sorted(shares.values(), reverse=True)[:2] for shares in sides]
    first = max(share for pair in tallest for share in pair[:1])
    second = max((share for pair in tallest for share in pair[1:]), default=0)
    return 2 * second if first > _CUT * second > 0 else first
