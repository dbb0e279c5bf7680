"""The drop files, which list the documents that dedup drops, sorted by order, for the merge."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from pipelines.dedup.exact import run_starts
from pipelines.segments.rows import DUPLICATE, NEAR_DUPLICATE
from shards.range import Range
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map
from shards.tables import column, open_between, open_table

DROPS = pa.schema(
    [
        ("order", pa.uint64()),
        ("segment", pa.uint32()),
        ("row", pa.uint32()),
        ("reason", pa.uint8()),
        ("own", pa.uint8()),
    ]
)
"""The columns of a drop file, which gives the segment number and row of each document to drop.

Rows are sorted by all columns. `own` is 1 if the text is repeated within this generation, 0 if an
earlier generation has the text.
"""

REASONS = (DUPLICATE, NEAR_DUPLICATE)
"""The reasons, in the order of their numbers in `reason`. A document with both gets the first."""

EXACT, NEAR = range(2)


def drop_table(
    order: np.ndarray,
    segment: np.ndarray,
    row: np.ndarray,
    *,
    reason: int,
    seen_before: np.ndarray | None = None,
) -> pa.Table:
    """Return documents as a table of DROPS, all with the same reason.

    Args:
        order: The documents' orders, uint64[n].
        segment: The numbers of the documents' segments, uint32[n].
        row: The documents' rows in .documents, uint32[n].
        reason: EXACT or NEAR.
        seen_before: bool[n], whether an earlier generation has each text; None if it has none.
    """
    ranked = np.lexsort((row, segment, order))
    reasons = np.full(len(ranked), reason, np.uint8)
    own = (
        np.ones(len(ranked), np.uint8)
        if seen_before is None
        else (~seen_before[ranked]).astype(np.uint8)
    )
    return pa.table([order[ranked], segment[ranked], row[ranked], reasons, own], schema=DROPS)


def merge_drops(
    paths: Sequence[AnyPath], within: Range, *, segments: Sequence[int] | None = None
) -> pa.Table:
    """Return the drops of all files in a range of the order as DROPS, each document once.

    Args:
        paths: The drop files.
        within: The range.
        segments: The numbers of the segments to read; None for all.
    """

    def read(path: AnyPath) -> pa.Table:
        found = open_between(path, "order", low=within.low, high=within.high)
        if segments is None:
            return found
        return found.filter(pa.array(np.isin(column(found, "segment"), segments)))

    parts = [DROPS.empty_table()]
    if paths:
        parts += concurrent_map(read, paths, where=paths[0])
    table = pa.concat_tables(parts).combine_chunks()
    columns = [column(table, name) for name in DROPS.names]
    ranked = np.lexsort(columns[::-1])
    columns = [values[ranked] for values in columns]
    # Keep the first drop of each document: that of the first reason, from an earlier generation if
    # there is one.
    first = run_starts(*columns[:3])
    return pa.table([values[first] for values in columns], schema=DROPS)


Counts = dict[str, dict[str, int]]
"""The number of drops by source and reason."""


def count_drops(table: pa.Table, source_of: Sequence[str]) -> tuple[Counts, Counts]:
    """Return the counts of all drops, and of those whose text an earlier generation has.

    Args:
        table: A table of DROPS.
        source_of: The source of each segment, by number.
    """
    sources = sorted(set(source_of))
    numbers = np.array([sources.index(source) for source in source_of], np.int64)
    source, reasons = numbers[column(table, "segment")], column(table, "reason")

    def counts(chosen: np.ndarray) -> Counts:
        return {
            name: {
                reason: int(((source == number) & chosen & (reasons == code)).sum())
                for code, reason in enumerate(REASONS)
            }
            for number, name in enumerate(sources)
        }

    return counts(np.ones(len(table), bool)), counts(column(table, "own") == 0)


def drop_path(work: AnyPath, reference: str) -> AnyPath:
    """Return the path of the drop file that a reference names."""
    return work / f"{reference}.drops"


class Drops:
    """The documents that dedup dropped, in a range of orders or with certain orders."""

    def __init__(self, table: pa.Table) -> None:
        table = table.sort_by([("segment", "ascending"), ("row", "ascending")]).combine_chunks()
        self._segment = column(table, "segment")
        self._row = column(table, "row")
        self._order = column(table, "order")
        self._reason = column(table, "reason")

    @classmethod
    def load(
        cls, paths: Sequence[AnyPath], within: Range, *, segments: Sequence[int] | None = None
    ) -> "Drops":
        """Return the drops in a range of the order; the arguments are those of merge_drops."""
        return cls(merge_drops(paths, within, segments=segments))

    @classmethod
    def among(cls, paths: Sequence[AnyPath], orders: np.ndarray) -> "Drops":
        """Return the drops of the documents that have one of these orders."""
        parts = [DROPS.empty_table()]
        for path in paths:
            table = open_table(path)
            # A drop file is long and the orders are few, so binary search reads only a few blocks.
            sorted_orders = column(table, "order")
            first = np.searchsorted(sorted_orders, orders, "left")
            last = np.searchsorted(sorted_orders, orders, "right")
            runs = [np.arange(first[i], last[i]) for i in np.flatnonzero(first < last)]
            if runs:
                parts.append(table.take(np.unique(np.concatenate(runs))))
        return cls(pa.concat_tables(parts))

    def rows(self, segment: int) -> np.ndarray:
        """Return the dropped rows (uint32) of a segment, sorted."""
        return self._row[self._of(segment)]

    def orders(self, segment: int) -> Mapping[int, np.ndarray]:
        """Return the orders (uint64) of a segment's dropped documents, by reason."""
        rows = self._of(segment)
        order, reason = self._order[rows], self._reason[rows]
        return {code: order[reason == code] for code in (EXACT, NEAR)}

    def _of(self, segment: int) -> slice:
        first, last = np.searchsorted(self._segment, [segment, segment + 1])
        return slice(int(first), int(last))
