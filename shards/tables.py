"""Writes tables whole and reads parts of them: rows by number, or by a sorted column.

On a disk a table is memory-mapped, so that only the pages in use are read. Behind a URL the footer
is fetched first, which has the positions of the blocks, and then the blocks with the requested
rows.
"""

import itertools
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shards.manifest import TableEntry
from shards.range import Range
from shards.storage.arrow import read_table, reraise_as_damage
from shards.storage.files import FileEntry, atomic_write, map_bytes
from shards.storage.remote import AnyPath, relative
from shards.storage.sparse import BLOCK_ROWS, SparseFile, SparseTable


def with_hash_range(table: pa.Table, within: Range) -> pa.Table:
    """Return a table whose schema states the range of its sorted hashes (sparse.hash_range)."""
    return table.replace_schema_metadata({"low": str(within.low), "high": str(within.high)})


def write_table(path: AnyPath, table: pa.Table) -> FileEntry:
    """Write a table as an Arrow IPC file, whole or not at all, and return its entry.

    Its batches have BLOCK_ROWS rows each; the last may have fewer.
    """
    table = table.unify_dictionaries().combine_chunks()
    with (
        atomic_write(path) as handle,
        pa.ipc.new_file(handle, table.schema) as writer,
    ):
        writer.write_table(table, max_chunksize=BLOCK_ROWS)
    return handle.entry


def write_entry(path: AnyPath, table: pa.Table, *, directory: AnyPath) -> TableEntry:
    """Write a table with `write_table`; return its entry with a path relative to `directory`."""
    entry = write_table(path, table)
    return TableEntry(path=relative(path, directory), rows=len(table), **vars(entry))


def open_table(path: AnyPath) -> pa.Table:
    """Open a table that write_table wrote: memory-map it, or fetch it from its URL.

    Raises:
        DamageError: the file is missing, or cannot be used.
    """
    return read_table(map_bytes(path), path)


def open_rows(path: AnyPath, rows: slice) -> pa.Table:
    """Return the rows of a table from rows.start to rows.stop, neither of which may be None."""
    return SparseTable(path).rows(rows)


def rows_between(path: AnyPath, key: str, *, low: int, high: int) -> slice:
    """Return the slice of a table that contains the rows with low <= key < high.

    Args:
        path: The table.
        key: A column of hashes (uint64), sorted.
        low: The smallest value of the range.
        high: The first value above the range, at most 2**64.
    """
    table = SparseTable(path)
    with reraise_as_damage(path):
        return slice(table.row_of(key, low), table.row_of(key, high))


def open_between(path: AnyPath, key: str, *, low: int, high: int) -> pa.Table:
    """Return the rows of a table with low <= key < high; see `rows_between` for the arguments."""
    table = SparseTable(path)
    with reraise_as_damage(path):
        return table.rows(slice(table.row_of(key, low), table.row_of(key, high)))


def lookup(path: AnyPath, key: str, values: np.ndarray) -> pa.Table:
    """Return the rows of a table whose sorted column `key` has these values; each must occur."""
    table = SparseTable(path)
    rows = [table.row_of(key, value) for value in values.tolist()]
    return pa.concat_tables(
        [table.rows(slice(0, 0)), *(table.rows(slice(row, row + 1)) for row in rows)]
    )


def map_items(path: AnyPath, *, starts: np.ndarray, lengths: np.ndarray, size: int) -> np.ndarray:
    """Memory-map a file and return its bytes (uint8); at least some runs of items are loaded.

    Args:
        path: The file.
        starts: int[n], the first item of each run.
        lengths: int[n], the number of items in each run.
        size: The number of items in the file, all of the same size.
    """
    file = SparseFile(path)
    width = len(file.data) // max(size, 1)
    file.fetch(np.stack([starts, starts + lengths], axis=1).astype(np.int64) * width)
    return file.data


def column(table: pa.Table, name: str) -> np.ndarray:
    """Return a numeric column; for a table of one batch it is a view of the memory-mapped file."""
    chunks: list[np.ndarray] = [chunk.to_numpy(zero_copy_only=True) for chunk in table[name].chunks]
    if len(chunks) == 1:
        return chunks[0]
    return np.concatenate([pa.array([], table[name].type).to_numpy(), *chunks])


def without_dictionary(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without dictionary encoding; strings become large_string."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return values.cast(pa.large_string()) if pa.types.is_string(values.type) else values


def slice_between(sorted_values: np.ndarray, low: int, high: int) -> slice:
    """Return the slice of sorted uint64 values in [low, high); high may be 2**64."""
    start = np.searchsorted(sorted_values, np.uint64(low)) if low else 0
    stop = np.searchsorted(sorted_values, np.uint64(high)) if high < 2**64 else len(sorted_values)
    return slice(int(start), int(stop))


def write_parquet(
    path: AnyPath, tables: Iterable[pa.Table], *, directory: AnyPath
) -> tuple[TableEntry, ...]:
    """Write tables of the dataset as one Parquet file, whole or not at all, and return its entry.

    Tables without rows are skipped, except the first. If there are no tables, no file is written
    and the result is empty.
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
    return (TableEntry(path=relative(path, directory), rows=rows, **vars(handle.entry)),)
