"""How a metric is distributed over the records that are looked for, with the bounds of its rules.

Cells are as wide as each other, or as each other's ratio where values spread over powers of ten; a
bound is where a cell ends. Each leads to its records.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shards.manifest import REPORT
from shards.storage.files import read_json, shape_expected, size_if_there
from shards.view.audit import Filter
from shards.view.html import cell
from shards.view.viewer import Viewer

_CELLS = 24
_SPREAD = 20
"""The largest value over the median from which on cells are of one ratio."""

_SIDES = {"<": "min", ">": "max"}
_EVERY_LANGUAGE = "*"
_SCORE_OPTION = "language_threshold"
"""The option that bounds the score of a language."""


class Bar(NamedTuple):
    """A cell."""

    least: float
    most: float
    """The largest number in it."""
    end: float
    """Where the next one begins."""
    rows: int
    bounds: list[str]
    """The rules whose bounds are where it begins."""


class Histogram(NamedTuple):
    """The values of a metric."""

    read: int
    """Records that were looked at."""
    bars: list[Bar]
    beyond: list[str]
    """The rules whose bounds are above all values."""


def histogram(viewer: Viewer, wanted: Filter) -> Histogram | None:
    """Return how the metric of a filter is distributed, whatever its range; None without values.

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
        bars.append(Bar(least, most, end, int(rows), [bounds.pop(bound) for bound in begins]))
    return Histogram(read, bars, list(bounds.values()))


def _edges(values: NDArray[np.float64], bounds: list[float]) -> NDArray[np.float64]:
    """Return where cells begin and the last one ends; bounds among the values are such places."""
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


def _bounds(viewer: Viewer, wanted: Filter) -> dict[float, str]:
    """Return the bounds on a metric, sorted, each with its rules in words.

    They are those of the last run, for a language that is looked for, or for all.
    """
    found: dict[tuple[float, str], list[str]] = {}
    if wanted.metric == "score" and (bound := viewer.dataset.manifest.options.get(_SCORE_OPTION)):
        found[float(bound), "min"] = [_EVERY_LANGUAGE]
    path = viewer.dataset.directory / REPORT
    with shape_expected(path, "build the dataset again, or delete it"):
        rules = read_json(path).get("rules", {}) if size_if_there(path) >= 0 else {}
        own = wanted.language if wanted.language in rules else _EVERY_LANGUAGE
        for language in [own] if wanted.language else sorted(rules):
            for rule in rules.get(language, ()):
                if rule["metric"] == wanted.metric:
                    key = (float(rule["bound"]), _SIDES[rule["comparison"]])
                    found.setdefault(key, []).append(language)
    bounds: dict[float, str] = {}
    for (bound, side), languages in sorted(found.items()):
        named = ", ".join(languages).replace(_EVERY_LANGUAGE, "every other language")
        label = f"{side} {cell(bound)} ({named})"
        bounds[bound] = f"{bounds[bound]}; {label}" if bound in bounds else label
    return bounds
