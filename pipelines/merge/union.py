"""The union of segments: one segment that holds the rows of all, in the same files.

Nothing is dropped and no duplicates are looked for: rows are sorted together, and references to
rows are renumbered. Equal texts of two segments stay two rows. So whatever reads segments gets the
same from the union as from its members.

Files are written one after the other, tables column by column, and long ones in pieces. Memory is
the largest of .documents, .audit, .slots and .bands and about one column more (for members behind a
URL the first two once more), never the texts, rejects or tokens.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import (
    EDGES,
    Signers,
    open_bands,
    read_slots,
    write_bands,
    write_slots,
)
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.segments.examples import EXAMPLES, most_examples
from pipelines.segments.segment import with_suffix
from shards.merged import gather
from shards.range import EVERYTHING, Range
from shards.storage.files import FileEntry, atomic_write, size_if_there
from shards.storage.remote import AnyPath
from shards.storage.sparse import BLOCK_ROWS, side_by_side
from shards.tables import (
    column,
    map_items,
    open_rows,
    open_table,
    spread_over,
    write_table,
)

TOKEN_BYTES_AT_ONCE = 256 << 20
"""Bytes of tokens that are copied at a time: behind a URL each file is asked for its part of them.
The tables are gone by then."""

BYTES_AT_ONCE = 64 << 20
"""Bytes of texts and rejects that are copied at a time."""


@dataclass(frozen=True, slots=True)
class MergedOrder:
    """The order in which the rows of several sorted tables stand once they are merged.

    `rows` (uint32[n]) are row numbers in the tables back to back; table i begins at `starts[i]`
    (int64[k + 1], the last is n).
    """

    rows: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, keys: Sequence[np.ndarray]) -> "MergedOrder":
        """Return the order by a key; rows with equal keys keep the order of the tables."""
        starts = np.cumsum([0, *(len(key) for key in keys)])
        rows = np.argsort(np.concatenate(keys), kind="stable").astype(np.uint32)
        return cls(rows, starts)

    def renumber(self, numbers: Sequence[np.ndarray]) -> np.ndarray:
        """Return the merged numbers (uint32) of rows, given their numbers in each table."""
        merged = np.empty(len(self.rows), np.uint32)
        merged[self.rows] = np.arange(len(self.rows), dtype=np.uint32)
        rows = [part + np.int64(start) for part, start in zip(numbers, self.starts, strict=False)]
        renumbered: np.ndarray = merged[np.concatenate(rows)]
        return renumbered

    def pieces(self, num: int) -> Iterator[tuple[np.ndarray, list[slice]]]:
        """Yield the rows in about `num` pieces of whole blocks.

        A piece is the slices of the tables that it comes from, and its rows as places in these
        slices back to back.
        """
        first = np.zeros(len(self.starts) - 1, np.int64)
        size = max(1, len(self.rows) // num // BLOCK_ROWS) * BLOCK_ROWS
        for block in np.split(self.rows, range(size, len(self.rows), size)):
            ordered = np.sort(block)  # a slice of each table, since tables are sorted
            last = first + np.diff(np.searchsorted(ordered, self.starts))
            slices = [slice(*ends) for ends in zip(first.tolist(), last.tolist(), strict=True)]
            yield np.searchsorted(ordered, block), slices
            first = last


def write_union(
    stem: AnyPath, members: Sequence[AnyPath], *, dtype: np.dtype[Any]
) -> dict[str, FileEntry]:
    """Write the union of segments and return its files by suffix.

    If two rows of .audit have the same order, nothing is written or returned: within a segment
    orders differ, and dedup identifies the rows of a segment by them.

    Args:
        stem: The stem of the union.
        members: The stems of the segments, in the order of their documents' identities.
        dtype: Type of a token.
    """
    orders = _columns(members, "audit", "order")["order"]
    audit = MergedOrder.of(orders)
    order = np.concatenate(orders)[audit.rows]
    if (order[1:] == order[:-1]).any():
        return {}
    del order, orders
    files = {"audit": write_sorted(stem, "audit", _tables(members, "audit"), audit)}
    if with_suffix(members[0], "texts").exists():
        files["texts"] = _write_long(stem, members, "texts", audit)
    del audit
    pa.default_memory_pool().release_unused()
    files["examples"] = _write_examples(stem, members)
    rejecting = [member for member in members if with_suffix(member, "rejects").exists()]
    if rejecting:
        rejects = MergedOrder.of(_columns(rejecting, "rejects", "order")["order"])
        files["rejects"] = _write_long(stem, rejecting, "rejects", rejects)
    documents = MergedOrder.of(_columns(members, "documents", "order")["order"])
    files["documents"] = write_sorted(stem, "documents", _tables(members, "documents"), documents)
    # Otherwise the allocator keeps the memory of the tables while the arrays that follow need it.
    pa.default_memory_pool().release_unused()
    files["tokens"] = _write_tokens(stem, members, documents, dtype=dtype)
    files["bins"] = _write_bins(stem, members)
    files["holdout"] = _write_holdout(stem, members, documents)
    if with_suffix(members[0], "hashes").exists():
        files["hashes"] = _write_hashes(stem, members, documents)
    if with_suffix(members[0], "slots").exists():
        files |= _write_signatures(stem, members, documents)
    return files


def _columns(members: Sequence[AnyPath], suffix: str, *names: str) -> dict[str, list[np.ndarray]]:
    """Return numeric columns by name, each as a list of the segments' arrays."""

    def read(stem: AnyPath) -> list[np.ndarray]:
        table = open_table(with_suffix(stem, suffix))
        return [column(table, name) for name in names]

    parts = side_by_side(read, members, where=members[0])
    return dict(zip(names, map(list, zip(*parts, strict=True)), strict=True))


def _tables(members: Sequence[AnyPath], suffix: str) -> list[pa.Table]:
    paths = [with_suffix(member, suffix) for member in members]
    return side_by_side(open_table, paths, where=paths[0])


def write_sorted(
    stem: AnyPath,
    suffix: str,
    tables: Sequence[pa.Table],
    order: MergedOrder,
    *,
    within: Range = EVERYTHING,
) -> FileEntry:
    """Write the rows of tables of one schema as one, a column at a time.

    Args:
        stem: The stem of the file.
        suffix: Its suffix.
        tables: The tables.
        order: The order of their rows, which is that of the order hash.
        within: The range that holds them.
    """
    rows = pa.array(order.rows)
    columns = [
        _concatenate([table[field.name] for table in tables], field.type).take(rows)
        for field in tables[0].schema
    ]
    table = pa.table(columns, schema=tables[0].schema)
    path = with_suffix(stem, suffix)
    return write_table(path, table if within == EVERYTHING else spread_over(table, within))


def _concatenate(parts: Sequence[pa.ChunkedArray], data_type: pa.DataType) -> pa.Array:
    whole = pa.chunked_array([chunk for part in parts for chunk in part.chunks], data_type)
    return whole.unify_dictionaries().combine_chunks()


def _write_long(
    stem: AnyPath, members: Sequence[AnyPath], suffix: str, order: MergedOrder
) -> FileEntry:
    """Write the rows of a table with long strings, a piece at a time."""
    paths = [with_suffix(member, suffix) for member in members]
    size = sum(max(0, size_if_there(path)) for path in paths)
    schema = open_rows(paths[0], slice(0, 0)).schema
    with (
        atomic_write(with_suffix(stem, suffix)) as handle,
        pa.ipc.new_file(handle, schema) as writer,
    ):
        for places, slices in order.pieces(1 + size // BYTES_AT_ONCE):
            parts = [
                open_rows(path, rows)
                for path, rows in zip(paths, slices, strict=True)
                if rows.stop > rows.start
            ]
            rows = pa.concat_tables([schema.empty_table(), *parts]).combine_chunks()
            writer.write_table(rows.take(places).combine_chunks(), max_chunksize=BLOCK_ROWS)
    return handle.entry


def _write_examples(stem: AnyPath, members: Sequence[AnyPath]) -> FileEntry:
    """Write the examples that any report may show, by reason and order."""
    examples = pa.concat_tables([open_table(with_suffix(stem, "examples")) for stem in members])
    examples = examples.sort_by(
        [(name, "ascending") for name in ("reason", "order", "position", "ordinal")]
    )
    reasons = np.array(examples["reason"].to_pylist(), object)
    parts = [
        examples.take(np.flatnonzero(reasons == reason)[: most_examples(reason)])
        for reason in dict.fromkeys(reasons.tolist())
    ]
    return write_table(
        with_suffix(stem, "examples"), pa.concat_tables([EXAMPLES.empty_table(), *parts])
    )


def _write_tokens(
    stem: AnyPath, members: Sequence[AnyPath], documents: MergedOrder, *, dtype: np.dtype[Any]
) -> FileEntry:
    """Write the documents' tokens in their order."""
    counts = [
        counts.astype(np.int64) for counts in _columns(members, "documents", "tokens")["tokens"]
    ]
    runs = [
        TokenRuns(with_suffix(member, "tokens"), np.cumsum(part) - part, part, int(part.sum()))
        for member, part in zip(members, counts, strict=True)
    ]
    return copy_tokens(with_suffix(stem, "tokens"), runs, documents, dtype=dtype)


@dataclass(frozen=True, slots=True)
class TokenRuns:
    """Documents in a file of `size` tokens: int64[n] where each begins, and its length."""

    path: AnyPath
    starts: np.ndarray
    lengths: np.ndarray
    size: int


def copy_tokens(
    path: AnyPath, runs: Sequence[TokenRuns], documents: MergedOrder, *, dtype: np.dtype[Any]
) -> FileEntry:
    """Write the tokens of several files' documents in an order, a piece at a time.

    Behind a URL the files of a piece are read at once.
    """
    lengths = np.concatenate([part.lengths for part in runs])[documents.rows]
    starts = np.concatenate([part.starts for part in runs])[documents.rows]
    owners = np.searchsorted(documents.starts, documents.rows, "right") - 1
    at_once = TOKEN_BYTES_AT_ONCE // dtype.itemsize
    cuts = np.searchsorted(np.cumsum(lengths), range(at_once, int(lengths.sum()), at_once))

    def read(number: int, rows: np.ndarray) -> np.ndarray:
        return map_items(
            runs[number].path, starts=starts[rows], lengths=lengths[rows], size=runs[number].size
        ).view(dtype)

    with atomic_write(path) as handle:
        for part in np.split(np.arange(len(owners)), cuts):
            tokens = [np.zeros(0, dtype)] * len(runs)
            numbers = np.unique(owners[part]).tolist()
            found = side_by_side(
                lambda number, part=part: read(number, part[owners[part] == number]),  # type: ignore[misc]
                numbers,
                where=path,
            )
            for index, number in enumerate(numbers):
                tokens[number] = found[index]
            for chunk in gather(tokens, owners[part], starts=starts[part], lengths=lengths[part]):
                handle.write(chunk)
            del found, tokens  # before the next piece is fetched
    return handle.entry


def _write_bins(stem: AnyPath, members: Sequence[AnyPath]) -> FileEntry:
    """Write what lies before each bin: the sum over the segments."""
    columns = _columns(members, "bins", "documents", "tokens")
    sums = {name: np.sum(parts, axis=0) for name, parts in columns.items()}
    return write_table(with_suffix(stem, "bins"), pa.table(sums))


def _write_holdout(stem: AnyPath, members: Sequence[AnyPath], documents: MergedOrder) -> FileEntry:
    columns = _columns(members, "holdout", "holdout", "order", "row")
    holdout, order = (np.concatenate(columns[name]) for name in ("holdout", "order"))
    return write_holdout(stem, holdout, documents.renumber(columns["row"]), order)


def write_holdout(
    stem: AnyPath, holdout: np.ndarray, row: np.ndarray, order: np.ndarray
) -> FileEntry:
    """Write the documents' holdout hashes (uint64), sorted, with their rows (uint32) and orders."""
    ranked = np.lexsort((row, holdout))
    table = pa.table({"holdout": holdout[ranked], "row": row[ranked], "order": order[ranked]})
    return write_table(with_suffix(stem, "holdout"), table)


def _write_hashes(stem: AnyPath, members: Sequence[AnyPath], documents: MergedOrder) -> FileEntry:
    names = ("hash_high", "hash_low", "order", "row", "copies")
    columns = _columns(members, "hashes", *names)
    row = documents.renumber(columns.pop("row"))
    values = {name: np.concatenate(parts) for name, parts in columns.items()}
    ranked = np.lexsort((values["order"], values["hash_low"], values["hash_high"]))
    values["row"] = row
    return write_table(
        with_suffix(stem, "hashes"), pa.table({name: values[name][ranked] for name in names})
    )


def _write_signatures(
    stem: AnyPath, members: Sequence[AnyPath], documents: MergedOrder
) -> dict[str, FileEntry]:
    """Write the signers and their bands."""
    slots = [with_suffix(member, "slots") for member in members]
    parts = [read_slots(path, "order") for path in slots]
    signers, orders = MergedOrder.of(parts), np.concatenate(parts)
    return {
        "slots": _write_slots(stem, slots, documents, signers),
        "bands": _write_bands(stem, members, signers, order=orders[signers.rows]),
    }


def _write_slots(
    stem: AnyPath, slots: Sequence[AnyPath], documents: MergedOrder, signers: MergedOrder
) -> FileEntry:
    order = np.concatenate([read_slots(path, "order") for path in slots])[signers.rows]
    row = documents.renumber([read_slots(path, "row") for path in slots])[signers.rows]
    merged = signers.renumber([np.arange(len(signers.rows))])
    values = np.empty((len(order), NUM_SLOTS), np.uint8)
    for path, (first, last) in zip(slots, itertools.pairwise(signers.starts), strict=True):
        values[merged[first:last]] = read_slots(path, "slots")
    return write_slots(with_suffix(stem, "slots"), Signers(order, row, values))


def _write_bands(
    stem: AnyPath, members: Sequence[AnyPath], signers: MergedOrder, *, order: np.ndarray
) -> FileEntry:
    paths = [with_suffix(member, "bands") for member in members]
    bands = [np.empty(len(order), np.uint64) for _ in range(NUM_BANDS)]
    for number, hashes in enumerate(bands):
        parts = [open_bands(path, number, first=0, last=EDGES) for path in paths]
        rows = signers.renumber([part.signer for part in parts])
        hashes[rows] = np.concatenate([part.hash for part in parts])
    return write_bands(with_suffix(stem, "bands"), bands, order=order)
