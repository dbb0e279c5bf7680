"""Tables that are written whole and read in parts: rows by number, or by a sorted column.

On a disk a table is mapped and nothing is read but what is touched. Of one behind a URL its ends
are fetched, which say where everything lies, and then the bytes of the rows that are asked for.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pipelines.sparse import SparseFile, rows_near
from shards.manifest import TableEntry
from shards.remote import AnyPath, RemotePath, relative
from shards.storage import FileEntry, atomic_write, map_bytes


def write_table(path: AnyPath, table: pa.Table) -> FileEntry:
    """Write a table as an Arrow IPC file of one batch, whole or not at all; return its entry."""
    table = table.unify_dictionaries().combine_chunks()
    with (
        atomic_write(path) as handle,
        pa.ipc.new_file(handle, table.schema) as writer,
    ):
        writer.write_table(table)
    return handle.entry


def write_entry(path: AnyPath, table: pa.Table, *, directory: AnyPath) -> TableEntry:
    """Write a table as `write_table` does and return its entry, its path below `directory`."""
    entry = write_table(path, table)
    return TableEntry(
        path=relative(path, directory),
        rows=len(table),
        bytes=entry.bytes,
        crc32c=entry.crc32c,
    )


def open_table(path: AnyPath) -> pa.Table:
    """Return a table that write_table wrote, memory-mapped, or fetched from its URL."""
    return pa.ipc.open_file(pa.py_buffer(map_bytes(path))).read_all()


def open_rows(path: AnyPath, rows: slice, *, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows from rows.start to rows.stop of a table.

    Args:
        path: The table.
        rows: Both ends are given.
        columns: Names of those that are needed; all, if None.
    """
    if isinstance(path, RemotePath):
        file = SparseFile(path)
        return file.rows(file.table(), rows, columns=columns)
    table = open_table(path)
    chosen = table if columns is None else table.select(list(columns))
    return chosen.slice(rows.start, rows.stop - rows.start)


def every_row(path: AnyPath, *columns: str) -> pa.Table:
    """Return some columns of a table."""
    if isinstance(path, RemotePath):
        file = SparseFile(path)
        table = file.table()
        return file.rows(table, slice(0, len(table)), columns=columns)
    return open_table(path).select(list(columns))


def rows_between(path: AnyPath, key: str, *, low: int, high: int) -> slice:
    """Return the rows of a table with low <= key < high.

    Args:
        path: The table.
        key: A column of hashes (uint64), sorted.
        low: Least value.
        high: Values are less; may be 2**64.
    """
    if isinstance(path, RemotePath):
        file = SparseFile(path)
        return rows_near(file, file.table(), key, low=low, high=high)
    return between(column(open_table(path), key), low, high)


def open_between(path: AnyPath, key: str, *, low: int, high: int) -> tuple[pa.Table, int]:
    """Return the rows of a table with low <= key < high, and the number of the first of them.

    Args:
        path: The table.
        key: A column of hashes (uint64), sorted.
        low: Least value.
        high: Values are less; may be 2**64.
    """
    if isinstance(path, RemotePath):
        file = SparseFile(path)
        table = file.table()
        rows = rows_near(file, table, key, low=low, high=high)
        return file.rows(table, rows), rows.start
    table = open_table(path)
    rows = between(column(table, key), low, high)
    return table.slice(rows.start, rows.stop - rows.start), rows.start


def lookup(path: AnyPath, key: str, values: np.ndarray) -> pa.Table:
    """Return the rows of a table whose sorted column `key` has these values, all of them there."""
    if isinstance(path, RemotePath):
        file = SparseFile(path)
        table = file.table()
        keys = column(file.rows(table, slice(0, len(table)), columns=[key]), key)
        return file.take(table, np.searchsorted(keys, values))
    table = open_table(path)
    return table.take(np.searchsorted(column(table, key), values))


def map_items(path: AnyPath, *, starts: np.ndarray, lengths: np.ndarray, size: int) -> np.ndarray:
    """Return the bytes of a file (uint8) in which runs of items can be read; mapped on a disk.

    Args:
        path: The file.
        starts: int[n], the first item of each run.
        lengths: int[n], the number of items in each.
        size: How many items the file holds; all have the same number of bytes.
    """
    if not isinstance(path, RemotePath):
        return map_bytes(path)
    file = SparseFile(path)
    width = len(file.data) // max(size, 1)
    file.need(np.stack([starts, starts + lengths], axis=1).astype(np.int64) * width)
    return file.data


def column(table: pa.Table, name: str) -> np.ndarray:
    """Return a numeric column; of a one-batch table it is a view of the mapped file."""
    chunks: list[np.ndarray] = [chunk.to_numpy(zero_copy_only=True) for chunk in table[name].chunks]
    if len(chunks) == 1:
        return chunks[0]
    return np.concatenate([pa.array([], table[name].type).to_numpy(), *chunks])


def between(sorted_values: np.ndarray, low: int, high: int) -> slice:
    """Return the slice of sorted uint64 values in [low, high); high may be 2**64."""
    start = np.searchsorted(sorted_values, np.uint64(low)) if low else 0
    stop = np.searchsorted(sorted_values, np.uint64(high)) if high < 2**64 else len(sorted_values)
    return slice(int(start), int(stop))
