"""The distribution of a metric over the records of a filter, with the bounds of its rules.

Cells have equal widths, or equal ratios if values spread over powers of ten; every bound is the
edge of a cell. Each cell links to its records.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shards.view.audit import RecordFilter
from shards.view.rules import ReportedRule, rules_of
from shards.view.viewer import Viewer

_CELLS = 24
_SPREAD = 20
"""The ratio of the largest value to the median above which cells have equal ratios."""


class Bar(NamedTuple):
    """A cell of a histogram."""

    least: float
    most: float
    """The largest number in the cell."""
    end: float
    """The number at which the next cell begins."""
    rows: int
    rules: list[ReportedRule]
    """The rules whose bounds are the start of the cell."""


class Histogram(NamedTuple):
    """The distribution of the values of a metric."""

    read: int
    """The number of records that were read."""
    bars: list[Bar]
    beyond: list[ReportedRule]
    """The rules whose bounds are above all values."""


def histogram(viewer: Viewer, wanted: RecordFilter) -> Histogram | None:
    """Return the distribution of a filter's metric, ignoring its range; None if no values exist.

    Raises:
        DamageError: A table, or the report with the rules, is damaged.
    """
    everywhere = replace(wanted, least=None, most=None)
    values, read = viewer.audit.sample(everywhere, seconds=viewer.seconds)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    bounds = _bounds(viewer, wanted)
    edges = _edges(values, list(bounds))
    counts, _ = np.histogram(values, edges)
    bars = []
    for least, end, rows in zip(edges[:-1].tolist(), edges[1:].tolist(), counts, strict=True):
        most = end if end == edges[-1] else float(np.nextafter(end, least))
        begins = [bound for bound in bounds if bound <= least or bound < end]
        rules = [rule for bound in begins for rule in bounds.pop(bound)]
        bars.append(Bar(least, most, end, int(rows), rules))
    return Histogram(read, bars, [rule for rules in bounds.values() for rule in rules])


def _edges(values: NDArray[np.float64], bounds: list[float]) -> NDArray[np.float64]:
    """Return the edges of cells, which include all bounds within the range of values."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        return np.array([low, np.nextafter(high, np.inf)])
    positive = values[values > 0]
    if low >= 0 and high > _SPREAD * np.median(values) > 0:
        edges = np.geomspace(positive.min(), high, _CELLS + 1)
        edges = edges if low else np.concatenate([[0], edges])
    else:
        edges = np.linspace(low, high, _CELLS + 1)
    edges[1:-1] = [float(f"{edge:.3g}") for edge in edges[1:-1]]
    for bound in bounds:
        if low < bound < high:
            nearest = 1 + int(np.argmin(np.abs(edges[1:-1] - bound)))
            edges[nearest] = bound
    return np.unique(edges)


def _bounds(viewer: Viewer, wanted: RecordFilter) -> dict[float, list[ReportedRule]]:
    """Return the rules of the last run about a filter's metric, by bound in ascending order."""
    rules = (each for each in rules_of(viewer, wanted.language) if each.metric == wanted.metric)
    bounds: dict[float, list[ReportedRule]] = {}
    for rule in sorted(rules, key=lambda each: (each.bound, each.comparison, each.language)):
        bounds.setdefault(rule.bound, []).append(rule)
    return bounds
