"""Lists of the documents that dedup leaves out: tables sorted by order, searched by merge."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from pipelines.segments.rows import DUPLICATE, NEAR_DUPLICATE
from pipelines.segments.sparse import side_by_side
from pipelines.segments.tables import column, open_between, open_table
from shards.storage.remote import AnyPath

DROPS = pa.schema(
    [
        ("order", pa.uint64()),
        ("segment", pa.uint32()),
        ("row", pa.uint32()),
        ("reason", pa.uint8()),
    ]
)
"""A drop file: the documents that go, by segment number and row, and why; sorted by all of them."""

REASONS = (DUPLICATE, NEAR_DUPLICATE)
"""What `reason` numbers. A document with both is told as the first."""

EXACT, NEAR = range(2)

GONE = 2**32 - 1
"""The row of a document that its segment has left out already: it may only get another reason."""


def drop_table(order: np.ndarray, segment: np.ndarray, row: np.ndarray, *, reason: int) -> pa.Table:
    """Return documents as a table of DROPS, all with one reason."""
    by = np.lexsort((row, segment, order))
    reasons = np.full(len(by), reason, np.uint8)
    return pa.table([order[by], segment[by], row[by], reasons], schema=DROPS)


def merged_drops(paths: Sequence[AnyPath], low: int, high: int) -> pa.Table:
    """Return the drops of all files with low <= order < high, each document once, as DROPS."""
    parts = (
        side_by_side(
            lambda path: open_between(path, "order", low=low, high=high), paths, where=paths[0]
        )
        if paths
        else []
    )
    table = pa.concat_tables([DROPS.empty_table(), *parts]).combine_chunks()
    columns = [column(table, name) for name in DROPS.names]
    by = np.lexsort(columns[::-1])
    order, segment, row, reason = (values[by] for values in columns)
    once = np.ones(len(by), bool)
    for values in (order, segment, row):
        once[1:] &= values[1:] == values[:-1]
    once[1:] = ~once[1:]
    once[:1] = True
    return pa.table([values[once] for values in (order, segment, row, reason)], schema=DROPS)


def count_drops(
    table: pa.Table, owners: Sequence[str]
) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Return the number of drops by source and reason, and by source those that change the reason.

    Args:
        table: Drops.
        owners: The source of each segment, by number.
    """
    sources = sorted(set(owners))
    numbers = np.array([sources.index(source) for source in owners], np.int64)
    source, gone = numbers[column(table, "segment")], column(table, "row") == GONE
    dropped = {
        name: {
            why: int(((source == number) & ~gone & (column(table, "reason") == reason)).sum())
            for reason, why in enumerate(REASONS)
        }
        for number, name in enumerate(sources)
    }
    renamed = {name: int(((source == number) & gone).sum()) for number, name in enumerate(sources)}
    return dropped, renamed


def drop_path(work: AnyPath, reference: str) -> AnyPath:
    """Return the path of a drop file."""
    return work / f"{reference}.drops"


class Drops:
    """The documents that dedup dropped, as far as a range or some orders are concerned."""

    def __init__(self, table: pa.Table) -> None:
        table = table.sort_by([("segment", "ascending"), ("row", "ascending")]).combine_chunks()
        self._segment = column(table, "segment")
        self._row = column(table, "row")
        self._order = column(table, "order")
        self._reason = column(table, "reason")

    @classmethod
    def load(cls, paths: Sequence[AnyPath], low: int, high: int) -> "Drops":
        """Return the drops with low <= order < high."""
        return cls(merged_drops(paths, low, high))

    @classmethod
    def among(cls, paths: Sequence[AnyPath], orders: np.ndarray) -> "Drops":
        """Return the drops of documents with any of these orders."""
        hits = [DROPS.empty_table()]
        for path in paths:
            table = open_table(path)
            # A drop file is long and the orders are few: look them up instead of reading it.
            sorted_orders = column(table, "order")
            first, last = (np.searchsorted(sorted_orders, orders, side) for side in _SIDES)
            found = np.flatnonzero(first < last)
            runs = [np.arange(first[at], last[at]) for at in found]
            if runs:
                hits.append(table.take(np.unique(np.concatenate(runs))))
        return cls(pa.concat_tables(hits))

    def rows(self, segment: int) -> np.ndarray:
        """Return the rows (uint32) of a segment that are dropped, sorted."""
        return self._row[self._of(segment)]

    def orders(self, segment: int) -> Mapping[int, np.ndarray]:
        """Return the orders (uint64) of a segment's documents that are dropped, by reason."""
        at = self._of(segment)
        order, reason = self._order[at], self._reason[at]
        return {number: order[reason == number] for number in (EXACT, NEAR)}

    def _of(self, segment: int) -> slice:
        first, last = np.searchsorted(self._segment, [segment, segment + 1])
        return slice(int(first), int(last))


_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
