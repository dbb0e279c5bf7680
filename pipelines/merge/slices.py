"""Slices of segments for a range of the order: documents, audit rows and rejects.

Training shards lack dropped and held-out documents; validation shards have the held-out documents.
`shards/merged.py` sorts the slices by order, and `items.py` writes them as a shard.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dedup.drops import REASONS, Drops
from pipelines.segments.bins import Bins
from pipelines.segments.rows import CATEGORICAL, DROPPED, KEPT
from pipelines.segments.segment import with_suffix
from shards.merged import ShardSlice
from shards.range import Range
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map, copy_rows
from shards.tables import (
    column,
    map_items,
    open_between,
    open_rows,
    rows_between,
    slice_between,
)


@dataclass(frozen=True, slots=True)
class DocumentSlice:
    """Documents of one segment, and where the tokens of each start in a file of `size` tokens."""

    documents: pa.Table
    starts: np.ndarray
    size: int

    def between(self, within: Range) -> "DocumentSlice":
        """Return the documents in a range of orders."""
        rows = slice_between(column(self.documents, "order"), within.low, within.high)
        return replace(self, documents=self.documents[rows], starts=self.starts[rows])


def find_documents(
    stem: AnyPath, within: Range, *, dropped: np.ndarray, holdout: int
) -> DocumentSlice:
    """Return the documents of a segment in a range that are neither dropped nor held out.

    Args:
        stem: The segment.
        within: The range of orders, which overlaps the segment's range.
        dropped: The rows that dedup dropped, sorted.
        holdout: The holdout hash below which documents are validation.
    """
    bins = Bins(with_suffix(stem, "bins"))
    first, last = bins.around(within)
    base = int(bins.documents[first])
    near = open_rows(with_suffix(stem, "documents"), slice(base, int(bins.documents[last])))
    exact = slice_between(column(near, "order"), within.low, within.high)
    documents = near.slice(exact.start, exact.stop - exact.start)
    lengths = column(near, "tokens")[: exact.stop].astype(np.int64)
    starts = bins.tokens[first] + np.cumsum(lengths) - lengths
    numbers = np.arange(base + exact.start, base + exact.stop)
    keep = ~np.isin(numbers, dropped)
    if holdout:
        keep &= column(documents, "holdout") >= np.uint64(holdout)
    kept = np.flatnonzero(keep)
    documents = copy_rows(documents.take(kept))
    return DocumentSlice(documents, starts[exact.start :][kept], int(bins.tokens[-1]))


def take_range(stem: AnyPath, within: Range, *, dropped: np.ndarray, holdout: int) -> ShardSlice:
    """Return the documents that find_documents finds, with tokens; the arguments are the same."""
    return with_tokens(stem, find_documents(stem, within, dropped=dropped, holdout=holdout))


def take_rows(stem: AnyPath, rows: np.ndarray) -> ShardSlice:
    """Return the documents in some rows of a segment; `rows` is sorted."""
    bins = Bins(with_suffix(stem, "bins"))
    before, tokens = bins.documents, bins.tokens
    first, last = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
    first_bin = int(np.searchsorted(before, first, "right")) - 1
    base = int(before[first_bin])
    near = open_rows(with_suffix(stem, "documents"), slice(base, last))
    lengths = column(near, "tokens").astype(np.int64)
    starts = tokens[first_bin] + np.cumsum(lengths) - lengths
    chosen = rows.astype(np.int64) - base
    documents = near.take(chosen)
    return with_tokens(stem, DocumentSlice(documents, starts[chosen], int(tokens[-1])))


def with_tokens(stem: AnyPath, found: DocumentSlice) -> ShardSlice:
    """Return documents of a segment with their tokens."""
    tokens = map_items(
        with_suffix(stem, "tokens"),
        starts=found.starts,
        lengths=column(found.documents, "tokens"),
        size=found.size,
    )
    return ShardSlice(documents=found.documents, starts=found.starts, tokens=tokens)


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Documents of one segment: `rows` uint32[n], sorted, and their holdout `hashes` uint64[n]."""

    rows: np.ndarray
    hashes: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> "HeldOut":
        return HeldOut(self.rows[rows], self.hashes[rows])


def find_held_out(
    stems: Mapping[int, AnyPath], holdout: int, within: Range, *, drops: Sequence[AnyPath]
) -> dict[int, HeldOut]:
    """Return the documents below a holdout threshold that dedup keeps, by segment.

    Args:
        stems: The segments by their number.
        holdout: The threshold.
        within: The range of orders.
        drops: The drop files.
    """

    def read(stem: AnyPath) -> tuple[HeldOut, np.ndarray]:
        table = open_between(with_suffix(stem, "holdout"), "holdout", low=0, high=holdout)
        order = column(table, "order")
        inside = (order >= np.uint64(within.low)) & (order <= np.uint64(within.high - 1))
        held_out = HeldOut(column(table, "row"), column(table, "holdout"))[inside]
        return held_out[np.argsort(held_out.rows)], order[inside]

    paths = list(stems.values())
    parts = concurrent_map(read, paths, where=paths[0]) if paths else []
    orders = [order for _, order in parts]
    dropped = Drops.among(drops, np.concatenate([np.zeros(0, np.uint64), *orders]))
    return {
        number: held_out[~np.isin(held_out.rows, dropped.rows(number))]
        for number, (held_out, _) in zip(stems, parts, strict=True)
    }


def merged_rows(
    stems: Mapping[int, AnyPath], suffix: str, within: Range, *, drops: Drops | None = None
) -> pa.Table:
    """Return the audit rows or rejects of segments in a range, sorted by order.

    Columns with dictionaries become plain strings. If `drops` is given, the audit rows of dropped
    documents get the verdict of dedup.

    Args:
        stems: The segments by their number.
        suffix: audit or rejects; every segment has the file.
        within: The range of orders.
        drops: The documents that dedup dropped in the range.
    """

    def read(item: tuple[int, AnyPath]) -> pa.Table:
        number, stem = item
        path = with_suffix(stem, suffix)
        table = open_between(path, "order", low=within.low, high=within.high)
        plain = [
            field.with_type(pa.large_string()) if field.type == CATEGORICAL else field
            for field in table.schema
        ]
        table = table.cast(pa.schema(plain))
        return table if drops is None else _with_verdicts(table, drops.orders(number))

    paths = list(stems.values())
    parts = concurrent_map(read, stems.items(), where=paths[0]) if paths else []
    merged = pa.concat_tables(parts) if parts else pa.table({"order": pa.array([], pa.uint64())})
    return merged.take(np.argsort(column(merged, "order"), kind="stable"))


def merged_texts(stems: Mapping[int, AnyPath], within: Range) -> pa.Table:
    """Return the texts of the audit rows that merged_rows returns, in the same order.

    Args:
        stems: The segments, which all have .texts, by number.
        within: The range of orders.
    """

    def read(stem: AnyPath) -> pa.Table:
        audit = with_suffix(stem, "audit")
        rows = rows_between(audit, "order", low=within.low, high=within.high)
        texts = open_rows(with_suffix(stem, "texts"), rows)
        return texts.append_column("order", open_rows(audit, rows)["order"])

    texts = pa.concat_tables(concurrent_map(read, stems.values(), where=next(iter(stems.values()))))
    return texts.take(np.argsort(column(texts, "order"), kind="stable")).select(["text"])


def dropped_rows(stems: Mapping[int, AnyPath], within: Range, *, drops: Drops) -> pa.Table:
    """Return the audit rows of the documents dropped in a range, with texts, sorted by order.

    Args:
        stems: The segments, which all have .texts, by number.
        within: The range of orders.
        drops: The documents that dedup dropped in the range.
    """
    rows = merged_rows(stems, "audit", within, drops=drops)
    rows = rows.append_column("text", merged_texts(stems, within)["text"])
    return rows.filter(pc.equal(rows["verdict"], DROPPED))


def _with_verdicts(audit: pa.Table, dropped: Mapping[int, np.ndarray]) -> pa.Table:
    """Return audit rows with the verdicts of dedup; `dropped` has orders of documents by reason."""
    for reason, orders in dropped.items():
        if not len(orders):
            continue
        mask = pc.and_(
            pa.array(np.isin(column(audit, "order"), orders)), pc.equal(audit["verdict"], KEPT)
        )
        for name, value in (("verdict", DROPPED), ("reason", REASONS[reason])):
            changed = pc.if_else(mask, pa.scalar(value, pa.large_string()), audit[name])
            audit = audit.set_column(audit.schema.get_field_index(name), name, changed)
    return audit
