"""Merge: one shard in, one shard out.

A shard is a range of the order hash. Its task takes the range's slice of every segment of the
source, leaves out what dedup dropped and what is held out, sorts by order and writes the shard, and
with it the final audit rows and rejects of the range. Validation shards are gathered from the held-
out rows.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.dedup.drops import EXACT, REASONS, Drops
from pipelines.segments.range import Range
from pipelines.segments.rows import DROPPED, KEPT, NAME, NEAR_DUPLICATE
from pipelines.segments.segment import NUM_BINS, gather, with_suffix
from pipelines.segments.sparse import side_by_side
from pipelines.segments.tables import (
    between,
    column,
    map_items,
    open_between,
    open_rows,
    open_table,
    rows_between,
)
from shards.manifest import ShardEntry, TableEntry
from shards.storage.files import atomic_write
from shards.storage.remote import AnyPath, relative
from shards.writer import write_shard

ROWS_AT_ONCE = 500_000
BYTES_AT_ONCE = 128 << 20
"""What is merged at a time of audit rows, and of texts and rejects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSlice:
    """Documents of one segment: their rows, and where each one's tokens begin in `tokens`."""

    documents: pa.Table
    starts: np.ndarray
    tokens: np.ndarray


def take_range(stem: AnyPath, within: Range, *, dropped: np.ndarray, holdout: int) -> SegmentSlice:
    """Return the documents of a segment in a range that are neither dropped nor held out.

    Args:
        stem: The segment.
        within: The range of orders.
        dropped: Rows that dedup dropped, sorted.
        holdout: Documents whose holdout hash is smaller are validation.
    """
    bins = open_table(with_suffix(stem, "bins"))
    shift = 64 - (NUM_BINS - 1).bit_length()
    first_bin, last_bin = within.low >> shift, (within.high - 1) >> shift
    rows = column(bins, "documents")
    base = int(rows[first_bin])
    near = open_rows(with_suffix(stem, "documents"), slice(base, int(rows[last_bin + 1])))
    exact = between(column(near, "order"), within.low, within.high)
    documents = near.slice(exact.start, exact.stop - exact.start)
    lengths = column(near, "tokens")[: exact.stop].astype(np.int64)
    tokens = column(bins, "tokens")
    starts = tokens[first_bin] + np.cumsum(lengths) - lengths
    numbers = np.arange(base + exact.start, base + exact.stop)
    stay = ~np.isin(numbers, dropped)
    if holdout:
        stay &= column(documents, "holdout") >= np.uint64(holdout)
    chosen = np.flatnonzero(stay)
    return _piece(stem, documents.take(chosen), starts[exact.start :][chosen], size=int(tokens[-1]))


def take_rows(stem: AnyPath, rows: np.ndarray) -> SegmentSlice:
    """Return the documents of a segment in these rows, which are sorted."""
    bins = open_table(with_suffix(stem, "bins"))
    before, tokens = column(bins, "documents"), column(bins, "tokens")
    first, last = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
    at = int(np.searchsorted(before, first, "right")) - 1
    base = int(before[at])
    near = open_rows(with_suffix(stem, "documents"), slice(base, last))
    lengths = column(near, "tokens").astype(np.int64)
    starts = tokens[at] + np.cumsum(lengths) - lengths
    chosen = rows.astype(np.int64) - base
    return _piece(stem, near.take(chosen), starts[chosen], size=int(tokens[-1]))


def _piece(stem: AnyPath, documents: pa.Table, starts: np.ndarray, *, size: int) -> SegmentSlice:
    """Return documents whose tokens begin at `starts` in the segment's file of `size` tokens."""
    tokens = map_items(
        with_suffix(stem, "tokens"),
        starts=starts,
        lengths=column(documents, "tokens"),
        size=size,
    )
    return SegmentSlice(documents=documents, starts=starts, tokens=tokens)


@dataclass(frozen=True, slots=True)
class Held:
    """Documents of one segment: `rows` uint32[n], sorted, `hashes` uint64[n] of the holdout."""

    rows: np.ndarray
    hashes: np.ndarray


def held_out(
    stems: Mapping[int, AnyPath], holdout: int, within: Range, *, drops: Sequence[AnyPath]
) -> dict[int, Held]:
    """Return, by segment, the documents with holdout hashes below a threshold that dedup leaves.

    Args:
        stems: The segments by their number.
        holdout: The threshold.
        within: The range of orders.
        drops: The drop files.
    """

    def read(stem: AnyPath) -> tuple[Held, np.ndarray]:
        table = open_between(with_suffix(stem, "holdout"), "holdout", low=0, high=holdout)
        order = column(table, "order")
        inside = (order >= np.uint64(within.low)) & (order <= np.uint64(within.high - 1))
        rows, hashes = (column(table, name)[inside] for name in ("row", "holdout"))
        by = np.argsort(rows)
        return Held(rows[by], hashes[by]), order[inside]

    paths = list(stems.values())
    found = side_by_side(read, paths, where=paths[0]) if paths else []
    orders = [order for _, order in found]
    gone = Drops.among(drops, np.concatenate([np.zeros(0, np.uint64), *orders]))
    held = {}
    for at, (each, _) in zip(stems, found, strict=True):
        stay = ~np.isin(each.rows, gone.rows(at))
        held[at] = Held(each.rows[stay], each.hashes[stay])
    return held


def write_merged(
    stem: AnyPath, pieces: Sequence[SegmentSlice], *, directory: AnyPath, dtype: np.dtype[Any]
) -> ShardEntry:
    """Write the documents of all pieces, by order, as a shard.

    Equal orders keep the order of the pieces, which is that of the documents' identities.
    """
    plain = [piece.documents.drop_columns(["holdout"]) for piece in pieces]
    documents = pa.concat_tables(plain).unify_dictionaries()
    order = np.argsort(column(documents, "order"), kind="stable")
    owners = np.repeat(np.arange(len(pieces)), [len(piece.starts) for piece in pieces])
    documents = documents.take(order)
    return write_shard(
        stem,
        documents,
        directory=directory,
        tokens=gather(
            [piece.tokens.view(dtype) for piece in pieces],
            owners[order],
            starts=np.concatenate([piece.starts for piece in pieces])[order],
            lengths=column(documents, "tokens"),
        ),
        dtype=dtype,
    )


def merged_rows(
    stems: Mapping[int, AnyPath], suffix: str, within: Range, *, drops: Drops | None = None
) -> pa.Table:
    """Return the audit rows or rejects of segments in a range, by order, strings plain.

    With `drops` the audit rows of dropped documents get dedup's verdict.

    Args:
        stems: The segments by their number.
        suffix: audit or rejects; all have the file.
        within: The range of orders.
        drops: What dedup dropped there.
    """

    def read(item: tuple[int, AnyPath]) -> pa.Table:
        number, stem = item
        path = with_suffix(stem, suffix)
        table = open_between(path, "order", low=within.low, high=within.high)
        names = {field.name: field.type for field in table.schema}
        plain = pa.schema(
            [(name, pa.large_string() if kind == NAME else kind) for name, kind in names.items()]
        )
        table = table.cast(plain)
        return table if drops is None else _with_verdicts(table, drops.orders(number))

    paths = list(stems.values())
    parts = side_by_side(read, stems.items(), where=paths[0]) if paths else []
    merged = pa.concat_tables(parts) if parts else pa.table({"order": pa.array([], pa.uint64())})
    return merged.take(np.argsort(column(merged, "order"), kind="stable"))


def dropped_rows(stems: Mapping[int, AnyPath], within: Range, *, drops: Drops) -> pa.Table:
    """Return the audit rows of what was dropped in a range, with its text.

    Args:
        stems: The segments by their number; they hold texts.
        within: The range of orders.
        drops: What dedup dropped there.
    """

    def read(item: tuple[int, AnyPath]) -> pa.Table:
        number, stem = item
        rows = merged_rows({number: stem}, "audit", within, drops=drops)
        dropped = np.flatnonzero(pc.equal(rows["verdict"], DROPPED).to_numpy())
        texts = open_rows(with_suffix(stem, "texts"), _audited(stem, within)).take(dropped)
        return rows.take(dropped).append_column("text", texts["text"])

    rows = pa.concat_tables(side_by_side(read, stems.items(), where=next(iter(stems.values()))))
    return rows.take(np.argsort(column(rows, "order"), kind="stable"))


def cut(within: Range, *, rows: int, held_bytes: int) -> list[Range]:
    """Return a range in parts of bounded size.

    Args:
        within: The range.
        rows: Rows of the audit of all segments, over all orders; they are even.
        held_bytes: Size of their texts and rejects.
    """
    width = within.high - within.low
    parts = max(
        1, -(-rows * width // (ROWS_AT_ONCE << 64)), -(-held_bytes * width // (BYTES_AT_ONCE << 64))
    )
    edges = [within.low + width * at // parts for at in range(parts + 1)]
    return [Range(low=low, high=high) for low, high in itertools.pairwise(edges)]


def _audited(stem: AnyPath, within: Range) -> slice:
    """Return the rows of a segment's audit in a range."""
    return rows_between(with_suffix(stem, "audit"), "order", low=within.low, high=within.high)


def _with_verdicts(audit: pa.Table, dropped: Mapping[int, np.ndarray]) -> pa.Table:
    """Return audit rows with the verdicts of dedup: orders of what fell, by reason."""
    for number, orders in dropped.items():
        if not len(orders):
            continue
        open_to = pc.equal(audit["verdict"], KEPT)
        if number == EXACT:  # what its segment called near is equal to a document elsewhere
            near = pc.equal(audit["reason"], NEAR_DUPLICATE).fill_null(False)
            open_to = pc.or_(open_to, near)
        mask = pc.and_(pa.array(np.isin(column(audit, "order"), orders)), open_to)
        for name, value in (("verdict", DROPPED), ("reason", REASONS[number])):
            at = audit.schema.get_field_index(name)
            changed = pc.if_else(mask, pa.scalar(value, pa.large_string()), audit[name])
            audit = audit.set_column(at, name, changed)
    return audit


def write_rows(
    path: AnyPath, tables: Iterable[pa.Table], *, directory: AnyPath
) -> tuple[TableEntry, ...]:
    """Write tables of the dataset as one parquet file, whole or not at all, and return its entry.

    Tables without rows are left out but the first; without any table there is no file, no entry.
    """
    rows, remaining = 0, iter(tables)
    first = next(remaining, None)
    if first is None:
        return ()
    with (
        atomic_write(path) as handle,
        pq.ParquetWriter(handle, first.schema, compression="zstd") as writer,
    ):
        for table in itertools.chain([first], remaining):
            if table.num_rows or table is first:
                writer.write_table(table)
            rows += table.num_rows
    entry = TableEntry(
        path=relative(path, directory),
        rows=rows,
        bytes=handle.entry.bytes,
        crc32c=handle.entry.crc32c,
    )
    return (entry,)
