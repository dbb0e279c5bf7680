"""The union of segments, or of one range of their order: one segment that holds the rows of all.

For a group nothing is dropped and no duplicates are looked for: rows are sorted together, and
references to rows are renumbered. Equal texts of two segments stay two rows. So whatever reads
segments gets the same from the union as from its members.

Files are written one after the other, tables column by column, and long ones in parts. Memory is
the largest of .documents and .audit twice, or of .slots and .bands, and about one column more (for
members behind a URL more), never the texts, rejects or tokens.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from pipelines.dedup.drops import Drops
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.merge.merge import find_documents, judged_rows, merged_rows
from pipelines.segments.bins import bins_table
from pipelines.segments.examples import EXAMPLES, most_examples
from pipelines.segments.segment import with_suffix
from shards.merged import gather
from shards.range import EVERYTHING, Range, split_range
from shards.storage.files import FileEntry, atomic_write, intact, size_if_there
from shards.storage.remote import AnyPath
from shards.storage.sparse import BLOCK_ROWS, side_by_side
from shards.tables import (
    between,
    column,
    map_items,
    open_rows,
    open_table,
    rows_between,
    spread_over,
    write_table,
)

TOKEN_BYTES_AT_ONCE = 256 << 20
"""Bytes of tokens that are copied at a time: behind a URL each file is asked for its part of them.
The tables are gone by then."""

NO_DROPS = Drops.among((), np.zeros(0, np.uint64))


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


@dataclass(frozen=True, slots=True)
class _Rejects:
    """What was written of them: how many, and the file, if there are any."""

    rows: int
    files: Mapping[str, FileEntry]


class Cut:
    """A range of the order of some segments, which is written as one segment.

    Memory is the tables .documents and .audit of the range, one after the other, twice; texts and
    rejects are copied in parts, tokens in pieces.
    """

    def __init__(
        self,
        stems: Mapping[int, AnyPath],
        *,
        rows: int,
        held_bytes: int,
        within: Range = EVERYTHING,
        drops: Drops = NO_DROPS,
    ) -> None:
        """Take segments.

        Args:
            stems: Their stems by number, in the order of identities.
            rows: Their audit rows, over all orders.
            held_bytes: Size of their texts and rejects, over all orders.
            within: The range.
            drops: What dedup dropped of them in the range.
        """
        self._stems = stems
        self._first = next(iter(stems.values()))
        self._within = within
        self._drops = drops
        self._parts = split_range(within, rows=rows, held_bytes=held_bytes)

    def write_documents(self, stem: AnyPath, *, dtype: np.dtype[Any]) -> dict[str, FileEntry]:
        """Write the documents that are not dropped and what belongs to them, and return the files.

        Args:
            stem: The stem of the new segment.
            dtype: Type of a token.
        """
        parts = side_by_side(
            lambda item: find_documents(
                item[1], self._within, dropped=self._drops.rows(item[0]), holdout=0
            ),
            self._stems.items(),
            where=self._first,
        )
        runs = [
            TokenRuns(
                with_suffix(path, "tokens"),
                part.starts,
                column(part.documents, "tokens").astype(np.int64),
                part.size,
            )
            for path, part in zip(self._stems.values(), parts, strict=True)
        ]
        tables = [part.documents for part in parts]
        del parts
        # Otherwise the allocator keeps what reading took while the new table needs as much.
        pa.default_memory_pool().release_unused()
        columns = {name: [column(table, name) for table in tables] for name in ("order", "holdout")}
        merged = MergedOrder.of(columns["order"])
        order, holdout = (np.concatenate(values)[merged.rows] for values in columns.values())
        files = {"documents": write_sorted(stem, "documents", tables, merged, within=self._within)}
        del tables, columns
        pa.default_memory_pool().release_unused()
        lengths = np.concatenate([run.lengths for run in runs])[merged.rows]
        files["bins"] = write_table(
            with_suffix(stem, "bins"), bins_table(order, lengths, within=self._within)
        )
        rows = np.arange(len(order), dtype=np.uint32)
        files["holdout"] = write_holdout(stem, holdout, rows, order)
        del order, holdout, lengths
        files["tokens"] = copy_tokens(with_suffix(stem, "tokens"), runs, merged, dtype=dtype)
        return files

    def write_audit(self, stem: AnyPath, *, texts: bool) -> dict[str, FileEntry]:
        """Write the audit rows with their last verdicts, maybe their texts, and return the files.

        Args:
            stem: The stem of the new segment.
            texts: Whether the segments hold texts.
        """
        parts = side_by_side(
            lambda item: judged_rows(item[1], self._within, dropped=self._drops.orders(item[0])),
            self._stems.items(),
            where=self._first,
        )
        pa.default_memory_pool().release_unused()
        orders = [column(part, "order") for part in parts]
        merged = MergedOrder.of(orders)
        files = {"audit": write_sorted(stem, "audit", parts, merged, within=self._within)}
        if texts:
            files["texts"] = _write_blocks(with_suffix(stem, "texts"), self._texts(orders))
        return files

    def _texts(self, orders: Sequence[np.ndarray]) -> Iterator[pa.Table]:
        """Yield the texts in the order of the audit rows, a part of the range at a time.

        Args:
            orders: Those of the audit rows of each segment in the range.
        """
        low, high = self._within.low, self._within.high
        before = [
            rows_between(with_suffix(path, "audit"), "order", low=low, high=high).start
            for path in self._stems.values()
        ]
        for part in self._parts:
            slices = [between(order, part.low, part.high) for order in orders]
            tables = [
                open_rows(with_suffix(path, "texts"), slice(first + rows.start, first + rows.stop))
                for path, first, rows in zip(self._stems.values(), before, slices, strict=True)
            ]
            keys = [order[rows] for order, rows in zip(orders, slices, strict=True)]
            yield pa.concat_tables(tables).take(MergedOrder.of(keys).rows)

    def write_rejects(self, stem: AnyPath, numbers: Collection[int]) -> _Rejects:
        """Write the rejects, if there are any.

        Args:
            stem: The stem of the new segment.
            numbers: The segments that have rejects.
        """
        stems = {number: self._stems[number] for number in numbers}
        counts: list[int] = []

        def found() -> Iterator[pa.Table]:
            for part in self._parts if stems else ():
                rows = merged_rows(stems, "rejects", part)
                if rows.num_rows:
                    counts.append(rows.num_rows)
                    yield spread_over(rows, self._within)

        tables = found()
        first = next(tables, None)
        if first is None:
            return _Rejects(0, {})
        path = with_suffix(stem, "rejects")
        file = _write_blocks(path, itertools.chain([first], tables))
        return _Rejects(sum(counts), {"rejects": file})


def _write_blocks(path: AnyPath, tables: Iterator[pa.Table]) -> FileEntry:
    """Write tables without dictionaries as one, in blocks as write_table does."""
    rest = next(tables)
    with atomic_write(path) as handle, pa.ipc.new_file(handle, rest.schema) as writer:
        for table in tables:
            full = len(rest) // BLOCK_ROWS * BLOCK_ROWS
            writer.write_table(rest[:full].combine_chunks(), max_chunksize=BLOCK_ROWS)
            rest = pa.concat_tables([rest[full:], table])
        writer.write_table(rest.combine_chunks(), max_chunksize=BLOCK_ROWS)
    return handle.entry


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
    orders = np.sort(np.concatenate(_columns(members, "audit", "order")["order"]))
    if (orders[1:] == orders[:-1]).any():
        return {}
    texts, rejects = (
        side_by_side(
            lambda member, suffix=suffix: size_if_there(with_suffix(member, suffix)),  # type: ignore[misc]
            members,
            where=stem,
        )
        for suffix in ("texts", "rejects")
    )
    held_bytes = sum(max(0, size) for size in (*texts, *rejects))
    cut = Cut(dict(enumerate(members)), rows=len(orders), held_bytes=held_bytes)
    del orders
    files = cut.write_audit(stem, texts=texts[0] >= 0)
    pa.default_memory_pool().release_unused()
    files["examples"] = _write_examples(stem, members)
    rejecting = [at for at, size in enumerate(rejects) if size >= 0]
    files |= cut.write_rejects(stem, rejecting).files
    files |= cut.write_documents(stem, dtype=dtype)
    order = np.sort(np.concatenate(_columns(members, "documents", "order")["order"]))
    if with_suffix(members[0], "hashes").exists():
        files["hashes"] = _write_hashes(stem, members, order)
    if with_suffix(members[0], "slots").exists():
        files |= _write_signatures(stem, members, order)
    return files


def intact_stem(stem: AnyPath, files: Mapping[str, FileEntry]) -> bool:
    """Return whether the files of a segment are as they were written."""
    return all(intact(with_suffix(stem, suffix), entry) for suffix, entry in files.items())


def _columns(members: Sequence[AnyPath], suffix: str, *names: str) -> dict[str, list[np.ndarray]]:
    """Return numeric columns by name, each as a list of the segments' arrays."""

    def read(stem: AnyPath) -> list[np.ndarray]:
        table = open_table(with_suffix(stem, suffix))
        return [column(table, name) for name in names]

    parts = side_by_side(read, members, where=members[0])
    return dict(zip(names, map(list, zip(*parts, strict=True)), strict=True))


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


def write_holdout(
    stem: AnyPath, holdout: np.ndarray, row: np.ndarray, order: np.ndarray
) -> FileEntry:
    """Write the documents' holdout hashes (uint64), sorted, with their rows (uint32) and orders."""
    ranked = np.lexsort((row, holdout))
    table = pa.table({"holdout": holdout[ranked], "row": row[ranked], "order": order[ranked]})
    return write_table(with_suffix(stem, "holdout"), table)


def _write_hashes(stem: AnyPath, members: Sequence[AnyPath], documents: np.ndarray) -> FileEntry:
    """Write the hashes of texts; `documents` are the orders of the documents, sorted."""
    names = ("hash_high", "hash_low", "order", "row", "copies")
    columns = {
        name: np.concatenate(parts) for name, parts in _columns(members, "hashes", *names).items()
    }
    columns["row"] = np.searchsorted(documents, columns["order"]).astype(np.uint32)
    ranked = np.lexsort((columns["order"], columns["hash_low"], columns["hash_high"]))
    table = pa.table({name: columns[name][ranked] for name in names})
    return write_table(with_suffix(stem, "hashes"), table)


def _write_signatures(
    stem: AnyPath, members: Sequence[AnyPath], documents: np.ndarray
) -> dict[str, FileEntry]:
    """Write the signers and their bands; `documents` are the orders of the documents, sorted."""
    slots = [with_suffix(member, "slots") for member in members]
    parts = [read_slots(path, "order") for path in slots]
    order = np.sort(np.concatenate(parts))
    places = [np.searchsorted(order, part) for part in parts]
    row = np.searchsorted(documents, order).astype(np.uint32)
    values = np.empty((len(order), NUM_SLOTS), np.uint8)
    for path, place in zip(slots, places, strict=True):
        values[place] = read_slots(path, "slots")
    files = {"slots": write_slots(with_suffix(stem, "slots"), Signers(order, row, values))}
    del row, values
    bands = [np.empty(len(order), np.uint64) for _ in range(NUM_BANDS)]
    for number, hashes in enumerate(bands):
        for member, place in zip(members, places, strict=True):
            part = open_bands(with_suffix(member, "bands"), number, first=0, last=EDGES)
            hashes[place[part.signer]] = part.hash
    files["bands"] = write_bands(with_suffix(stem, "bands"), bands, order=order)
    return files
