"""Tables on disk that are written whole, mapped when read, and searched by a sorted column."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from shards.manifest import TableEntry
from shards.storage import FileEntry, atomic_write, map_bytes


def write_table(path: Path, table: pa.Table) -> FileEntry:
    """Write a table as an Arrow IPC file of one batch, whole or not at all; return its entry."""
    table = table.unify_dictionaries().combine_chunks()
    with (
        atomic_write(path) as handle,
        pa.ipc.new_file(handle, table.schema) as writer,
    ):
        writer.write_table(table)
    return handle.entry


def write_entry(path: Path, table: pa.Table, *, directory: Path) -> TableEntry:
    """Write a table as `write_table` does and return its entry, its path below `directory`."""
    entry = write_table(path, table)
    return TableEntry(
        path=path.relative_to(directory).as_posix(),
        rows=len(table),
        bytes=entry.bytes,
        crc32c=entry.crc32c,
    )


def open_table(path: Path) -> pa.Table:
    """Return a table that write_table wrote, memory-mapped."""
    return pa.ipc.open_file(pa.py_buffer(map_bytes(path))).read_all()


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
