"""Histograms of the columns of the audit table, all on one grid.

From 0 to 1 the bins are 0.01 wide; above 1 each bin spans an eighth of an octave. This is fine
enough for shares and counts, so all columns have the same bins, and the histograms of parts add up
to the histogram of the whole.
"""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from pipelines.segments.rows import DROPPED, KEPT

PER_UNIT = 100
PER_OCTAVE = 8
BASE_COLUMNS = ("bytes", "tokens", "score")
"""Columns counted in every audit table, besides the metrics."""

Histogram = Mapping[str, int]
"""The number of rows in each bin that is not empty; bins are numbers as strings, as in JSON."""


def bins_of(values: np.ndarray) -> np.ndarray:
    """Return the bin (int64[n]) of each value; values below 0 count as 0."""
    values = np.maximum(values, 0)
    with np.errstate(divide="ignore"):
        octaves = np.floor(np.log2(values) * PER_OCTAVE)
    fine = np.minimum(np.floor(values * PER_UNIT), PER_UNIT)
    bins: np.ndarray = np.where(values > 1, PER_UNIT + 1 + octaves, fine).astype(np.int64)
    return bins


def edges_of(number: int) -> tuple[float, float]:
    """Return the lower and the upper edge of a bin."""
    if number < PER_UNIT:
        return number / PER_UNIT, (number + 1) / PER_UNIT
    if number == PER_UNIT:
        return 1.0, 1.0
    step = number - PER_UNIT - 1
    return 2 ** (step / PER_OCTAVE), 2 ** ((step + 1) / PER_OCTAVE)


def histograms(audit: pa.Table, metrics: Iterable[str]) -> dict[str, dict[str, dict[str, int]]]:
    """Return the number of rows in each bin, by column and verdict (kept, dropped).

    Rows without a value and quarantined rows are not counted.

    Args:
        audit: Audit rows.
        metrics: Columns besides BASE_COLUMNS.
    """
    verdicts = np.array(audit["verdict"].to_pylist(), object)
    return {
        name: {
            verdict: _count_bins(audit[name].to_numpy()[verdicts == verdict])
            for verdict in (KEPT, DROPPED)
        }
        for name in (*BASE_COLUMNS, *metrics)
    }


def _count_bins(values: np.ndarray) -> dict[str, int]:
    values = values.astype(np.float64)
    numbers, counts = np.unique(bins_of(values[~np.isnan(values)]), return_counts=True)
    return dict(zip(map(str, numbers.tolist()), counts.tolist(), strict=True))


def add_histograms(
    parts: Iterable[Mapping[str, Mapping[str, Histogram]]],
) -> dict[str, dict[str, dict[str, int]]]:
    """Return the sums of histograms, by column and verdict."""
    whole: dict[str, dict[str, dict[str, int]]] = {}
    for part in parts:
        for name, verdicts in part.items():
            for verdict, counts in verdicts.items():
                sums = whole.setdefault(name, {}).setdefault(verdict, {})
                for number, count in counts.items():
                    sums[number] = sums.get(number, 0) + count
    return whole
