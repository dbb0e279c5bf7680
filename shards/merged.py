"""Merges shards, tables and signatures of segments or generations, by ranges of order or hash.

slices of segments or shards ── merged_order ──▶ one shard
all generations of a source  ── MergedSource ──▶ its slices and the number of new shards
Parquet files, sorted        ── merged_tables ─▶ rows by order
signatures, sorted           ── merged_signatures
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from shards.format import BIN, shard_file
from shards.manifest import TRAIN, VALIDATION, ShardEntry, TableEntry
from shards.range import Range, split_range
from shards.reader import Dataset
from shards.removals import Rows
from shards.storage.files import map_bytes
from shards.storage.remote import AnyPath, RemotePath
from shards.storage.sparse import copy_rows
from shards.tables import column, map_items, slice_between, with_hash_range
from shards.writer import write_shard


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSlice:
    """Documents of one segment or shard, with the start of each document's tokens in `tokens`."""

    documents: pa.Table
    starts: np.ndarray
    tokens: np.ndarray


def merged_order(slices: Sequence[ShardSlice]) -> np.ndarray:
    """Return the row numbers (int64[n]) of all documents over all slices, sorted by order.

    Documents of equal order stay in the order of their slices, which is that of their identities.
    """
    orders = [column(part.documents, "order") for part in slices]
    return np.argsort(np.concatenate([np.zeros(0, np.uint64), *orders]), kind="stable")


def write_merged_shard(
    stem: AnyPath, slices: Sequence[ShardSlice], *, directory: AnyPath, dtype: np.dtype[Any]
) -> ShardEntry:
    """Write the documents of all slices as a shard, sorted by order.

    Documents of equal order stay in the order of their slices, which is that of their identities.
    """
    documents, tokens = merge_slices(slices, dtype=dtype)
    return write_shard(stem, documents, directory=directory, tokens=tokens, dtype=dtype)


def merge_slices(
    slices: Sequence[ShardSlice], *, dtype: np.dtype[Any]
) -> tuple[pa.Table, Iterator[np.ndarray]]:
    """Return the documents of all slices in their merged_order, and their tokens in parts."""
    parts = [part.documents for part in slices]
    documents = pa.concat_tables(parts, promote_options="default").unify_dictionaries()
    ranked = merged_order(slices)
    owners = np.repeat(np.arange(len(slices)), [len(part.starts) for part in slices])
    documents = documents.take(ranked)
    tokens = gather(
        [part.tokens.view(dtype) for part in slices],
        owners[ranked],
        starts=np.concatenate([part.starts for part in slices])[ranked],
        lengths=column(documents, "tokens"),
    )
    return documents, tokens


def gather(
    tokens: Sequence[np.ndarray], owners: np.ndarray, *, starts: np.ndarray, lengths: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield the tokens of n documents in the order of `owners`, a thousand documents at a time.

    Args:
        tokens: Arrays of tokens.
        owners: int[n], the index of the array that contains each document.
        starts: int[n], the position of each document's first token in that array.
        lengths: int[n], the number of tokens of each document.
    """
    for first_row in range(0, len(owners), 1024):
        part = slice(first_row, first_row + 1024)
        rows = zip(*(array[part].tolist() for array in (owners, starts, lengths)), strict=True)
        yield np.concatenate([tokens[owner][first : first + size] for owner, first, size in rows])


SHARD_TOKENS = 100_000_000
"""The default maximum number of tokens per shard."""

_BIN_BITS = 16
"""The number of bits of the order that define the bins in which tokens are counted."""


class MergedSource:
    """The shards of one source in all generations, and the number of shards after merging."""

    def __init__(self, dataset: Dataset, name: str, erased: Mapping[str, Rows]) -> None:
        """Collect the shards of the source.

        Args:
            dataset: The dataset.
            name: The name of the source.
            erased: Rows to leave out, by the path of their shard's entry.
        """
        self._dataset = dataset
        self._erased = erased
        self.entries = {
            split: dataset.manifest.shards(name, split=split) for split in (TRAIN, VALIDATION)
        }

    def _table(self, shard: ShardEntry) -> tuple[pa.Table, np.ndarray]:
        """Return the documents of a shard, and the rows (int64) that are not erased."""
        table = self._dataset.mapped_table(shard)
        rows = np.arange(len(table))
        if shard.path in self._erased:
            rows = np.delete(rows, self._erased[shard.path])
        return table, rows

    @cached_property
    def _spans(self) -> dict[str, Range]:
        """The range of orders of each shard that has documents, by the shard's path."""
        spans = {}
        for shard in itertools.chain.from_iterable(self.entries.values()):
            if shard.documents:
                order = column(self._dataset.mapped_table(shard), "order")
                spans[shard.path] = Range(low=int(order[0]), high=int(order[-1]) + 1)
        return spans

    @cached_property
    def num_shards(self) -> int:
        """The number of training shards in the new generation; pipelines follow the same rule."""
        options, shards = self._dataset.manifest.options, self.entries[TRAIN]
        if not shards or options.get("shards"):
            return int(options["shards"]) if shards else 0
        tokens, longest = np.zeros(1 << _BIN_BITS), 0
        for shard in shards:
            table, rows = self._table(shard)
            bins = column(table, "order")[rows] >> np.uint64(64 - _BIN_BITS)
            lengths = column(table, "tokens")[rows]
            tokens += np.bincount(bins.astype(np.int64), lengths, 1 << _BIN_BITS)
            longest = max(longest, int(lengths.max(initial=0)))
        limit = max(options.get("shard_tokens", SHARD_TOKENS), longest, 1)
        return min_shards(tokens.astype(np.int64), limit)

    @cached_property
    def num_validation(self) -> int:
        """The number of validation shards, which are about as long as training shards."""
        train, validation = (
            sum(shard.documents for shard in self.entries[split]) for split in (TRAIN, VALIDATION)
        )
        if not self.entries[VALIDATION]:
            return 0
        return max(1, -(-self.num_shards * validation // max(1, train + validation)))

    def slices(self, split: str, within: Range) -> list[ShardSlice]:
        """Return the documents of the shards of a split in a range."""
        slices = []
        for shard in self.entries[split]:
            span = self._spans.get(shard.path)
            if span is not None and span.overlaps(within):
                table, rows = self._table(shard)
                inside = slice_between(column(table, "order")[rows], within.low, within.high)
                slices.append(self._slice(shard, table, rows[inside]))
        if not slices:  # an empty slice, which has the columns
            shard = self.entries[split][0]
            slices.append(self._slice(shard, self._table(shard)[0], np.zeros(0, np.int64)))
        return slices

    def _slice(self, shard: ShardEntry, table: pa.Table, rows: np.ndarray) -> ShardSlice:
        directory = self._dataset.directory
        whole = len(rows) and len(rows) == rows[-1] + 1 - rows[0]
        chosen = table.slice(rows[0], len(rows)) if whole else table.take(rows)
        starts, documents = column(chosen, "offset"), chosen.drop_columns(["offset"])
        if isinstance(directory, RemotePath):
            starts, documents = starts.copy(), copy_rows(documents)
        tokens = map_items(
            shard_file(directory / shard.path, BIN),
            starts=starts,
            lengths=column(documents, "tokens"),
            size=shard.tokens,
        )
        return ShardSlice(documents=documents, starts=starts, tokens=tokens)


def min_shards(tokens: np.ndarray, limit: int) -> int:
    """Return the smallest power of two such that this many shards have at most `limit` tokens each.

    Within a bin, tokens are assumed to be evenly spread.

    Args:
        tokens: int64[n], the number of tokens in each of n equal bins of the order.
        limit: The maximum number of tokens per shard; at least that of the longest document.
    """
    shards = 1
    while shards < len(tokens) and tokens.reshape(shards, -1).sum(axis=1).max() > limit:
        shards *= 2
    fullest = int(tokens.reshape(shards, -1).sum(axis=1).max())
    return shards << (max(0, fullest - 1) // limit).bit_length()


SIGNATURE_BYTES = 64 << 20
"""The maximum number of bytes in a file of signatures, unless that takes more than MANY_FILES
files."""

MANY_FILES = 512
"""The number of signature files above which the files grow instead of their number, to at most
MAX_GROWTH times their normal size."""

MAX_GROWTH = 8


RowsToKeep = Callable[[pa.Table], NDArray[np.bool_]]
"""A function that returns a mask, bool[rows], of the rows of a table that stay."""


class OrderedTable:
    """A Parquet file that is sorted by `order`, with a filter for its rows."""

    def __init__(self, path: AnyPath, rows_to_keep: RowsToKeep | None = None) -> None:
        """Store the path and the function that selects the rows that stay."""
        self._path = path
        self._rows_to_keep = rows_to_keep

    @cached_property
    def footer(self) -> pq.FileMetaData:
        """The footer of the file, read only once."""
        return pq.read_metadata(pa.BufferReader(self._content()))

    def _content(self) -> pa.Buffer:
        return pa.py_buffer(map_bytes(self._path))

    @property
    def bytes(self) -> int:
        """The uncompressed size of the rows in bytes."""
        groups = range(self.footer.num_row_groups)
        return sum(self.footer.row_group(group).total_byte_size for group in groups)

    def rows(self, within: Range) -> pa.Table:
        """Return the rows in a range of orders; the file is not read if it has no such rows."""
        order = self.footer.schema.names.index("order")
        groups = [self.footer.row_group(group) for group in range(self.footer.num_row_groups)]
        found = [group.column(order).statistics for group in groups if group.num_rows]
        if not any(each.min < within.high and each.max >= within.low for each in found):
            return self.footer.schema.to_arrow_schema().empty_table()
        field = pc.field("order")
        low, last = (pa.scalar(edge, pa.uint64()) for edge in (within.low, within.high - 1))
        table = pq.read_table(
            pa.BufferReader(self._content()), filters=(field >= low) & (field <= last)
        )
        kept = self._rows_to_keep
        return table if kept is None else table.filter(pa.array(kept(table)))


def merged_tables(
    tables: Sequence[OrderedTable], within: Range, *, rows: int
) -> Iterator[pa.Table]:
    """Yield the rows of Parquet files in a range, by order, in parts of bounded size.

    Rows of equal order stay in the order of the files. Files without rows in the range are not
    opened again.

    Args:
        tables: The files, of which there is at least one.
        within: The range of orders.
        rows: The number of rows of all files.
    """
    held_bytes = sum(table.bytes for table in tables)
    for part in split_range(within, rows=rows, held_bytes=held_bytes):
        found = [table.rows(part) for table in tables]
        merged = pa.concat_tables(found, promote_options="default")
        yield merged.take(np.argsort(column(merged, "order"), kind="stable"))


def num_signature_files(groups: Sequence[Sequence[TableEntry]]) -> int:
    """Return the number of ranges, a power of two, into which signatures of one kind are split.

    Args:
        groups: The signature files of each generation.
    """
    num_bytes = sum(entry.bytes for group in groups for entry in group)
    size = min(max(SIGNATURE_BYTES, -(-num_bytes // MANY_FILES)), MAX_GROWTH * SIGNATURE_BYTES)
    least = max(1, -(-num_bytes // size), *(len(group) for group in groups))
    return 1 << (least - 1).bit_length()


def merged_signatures(tables: Sequence[pa.Table], within: Range) -> pa.Table:
    """Merge rows of signature tables, sorted by the hash of their kind.

    Rows with equal hashes are sorted by their remaining uint64 columns.

    Args:
        tables: At least one table, each with rows in a range of that hash.
        within: The range.
    """
    table = pa.concat_tables(tables)
    names = [field.name for field in table.schema if field.type == pa.uint64()]
    ranked = np.lexsort([column(table, name) for name in reversed(names)])
    return with_hash_range(table.take(ranked), within)
