"""Lists of the documents that dedup drops: tables sorted by order, searched by merge."""

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
"""A drop file: the documents to drop, by segment number and row, and why; sorted by all columns.

`own` is 1 if a document of this generation is why, 0 if one of an earlier generation is.
"""

REASONS = (DUPLICATE, NEAR_DUPLICATE)
"""The reasons, by number in `reason`. A document with both gets the first."""

EXACT, NEAR = range(2)


def drop_table(
    order: np.ndarray,
    segment: np.ndarray,
    row: np.ndarray,
    *,
    reason: int,
    known: np.ndarray | None = None,
) -> pa.Table:
    """Return documents as a table of DROPS, all with one reason.

    Args:
        order: uint64[n].
        segment: uint32[n].
        row: uint32[n].
        reason: EXACT or NEAR.
        known: bool[n], whether an earlier generation is why; None for none of them.
    """
    ranked = np.lexsort((row, segment, order))
    reasons = np.full(len(ranked), reason, np.uint8)
    own = np.ones(len(ranked), np.uint8) if known is None else (~known[ranked]).astype(np.uint8)
    return pa.table([order[ranked], segment[ranked], row[ranked], reasons, own], schema=DROPS)


def merge_drops(
    paths: Sequence[AnyPath], within: Range, *, segments: Sequence[int] | None = None
) -> pa.Table:
    """Return the drops of all files in a range of the order, each document once, as DROPS.

    Args:
        paths: The drop files.
        within: The range.
        segments: Numbers of segments; None for all.
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
    # Of a document's drops the one with the least reason, and an earlier generation before its own.
    first = run_starts(*columns[:3])
    return pa.table([values[first] for values in columns], schema=DROPS)


Counts = dict[str, dict[str, int]]
"""Drops by source and reason."""


def count_drops(table: pa.Table, owners: Sequence[str]) -> tuple[Counts, Counts]:
    """Return the drops, and those of them for which an earlier generation is the reason.

    Args:
        table: Drops.
        owners: The source of each segment, by number.
    """
    sources = sorted(set(owners))
    numbers = np.array([sources.index(source) for source in owners], np.int64)
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
    """Return the path of a drop file."""
    return work / f"{reference}.drops"


class Drops:
    """The documents that dedup dropped, within a range of orders or among some orders."""

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
        """Return the drops in a range of the order; arguments as in merge_drops."""
        return cls(merge_drops(paths, within, segments=segments))

    @classmethod
    def among(cls, paths: Sequence[AnyPath], orders: np.ndarray) -> "Drops":
        """Return the drops of documents with any of these orders."""
        parts = [DROPS.empty_table()]
        for path in paths:
            table = open_table(path)
            # A drop file is long and the orders are few: look them up instead of reading it.
            sorted_orders = column(table, "order")
            first = np.searchsorted(sorted_orders, orders, "left")
            last = np.searchsorted(sorted_orders, orders, "right")
            runs = [np.arange(first[i], last[i]) for i in np.flatnonzero(first < last)]
            if runs:
                parts.append(table.take(np.unique(np.concatenate(runs))))
        return cls(pa.concat_tables(parts))

    def rows(self, segment: int) -> np.ndarray:
        """Return the rows (uint32) of a segment that are dropped, sorted."""
        return self._row[self._of(segment)]

    def orders(self, segment: int) -> Mapping[int, np.ndarray]:
        """Return the orders (uint64) of a segment's documents that are dropped, by reason."""
        rows = self._of(segment)
        order, reason = self._order[rows], self._reason[rows]
        return {code: order[reason == code] for code in (EXACT, NEAR)}

    def _of(self, segment: int) -> slice:
        first, last = np.searchsorted(self._segment, [segment, segment + 1])
        return slice(int(first), int(last))
