"""Finds the first rule that a text breaks, using only the text's language and metrics."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.quality.profile import BELOW, Rule
from shards.errors import UserError

Metrics = Mapping[str, npt.NDArray[np.float32]]
"""Columns of metrics, of equal length; NaN means that a metric was not computed."""


def first_broken(rules: Sequence[Rule], metrics: Metrics) -> npt.NDArray[np.int16]:
    """Return, for each row, the index of the first rule that it breaks; -1 if it breaks none.

    Metric and bound are compared as float32, so that stored metrics give the same verdicts as those
    that were just computed: if the two differ by less than 6e-8 of their value, the metric equals
    its bound and breaks no rule. NaN on either side breaks nothing.
    """
    num_rows = len(next(iter(metrics.values()))) if metrics else 0
    broken = np.full(num_rows, -1, np.int16)
    for index in range(len(rules) - 1, -1, -1):
        rule = rules[index]
        values, bound = metrics[rule.metric], np.float32(rule.bound)
        broken[values < bound if rule.comparison == BELOW else values > bound] = index
    return broken


def metric_columns(table: pa.Table | pa.RecordBatch, names: Sequence[str]) -> Metrics:
    """Return columns of a table as float32 arrays, with NaN for null.

    Raises:
        UserError: The table lacks one of the columns, or the column "language".
    """
    missing = [name for name in (*names, "language") if name not in table.schema.names]
    if missing:
        raise UserError(
            f"The table has no column {', '.join(missing)}: it was made with other quality "
            "profiles. Other bounds can be tried on it; other profiles need the texts again."
        )
    return {
        name: _plain(table[name]).cast(pa.float32()).to_numpy(zero_copy_only=False)
        for name in names
    }


def language_codes(
    column: pa.Array | pa.ChunkedArray,
) -> tuple[list[str | None], npt.NDArray[np.int32]]:
    """Return the distinct strings of a column, and the index of each row's string; -1 for null."""
    column = _plain(column)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = pc.fill_null(column.indices.cast(pa.int32()), -1)
    return column.dictionary.to_pylist(), codes.to_numpy(zero_copy_only=False)


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.unify_dictionaries().combine_chunks()
    return column
