"""Reads only the requested parts of files and tables, on a disk or behind a URL.

A file on a disk is memory-mapped. Behind a URL the bytes are kept in an anonymous mapping of the
file's length, whose pages take no memory until bytes are fetched into them.
"""

import mmap
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import numpy as np
import pyarrow as pa

from shards.range import FULL_RANGE, Range
from shards.storage.arrow import check_buffers, open_reader, reraise_as_damage
from shards.storage.files import file_size, map_bytes
from shards.storage.remote import AnyPath, RemotePath

SMALL_BYTES = 256 << 10
"""The size up to which a file is fetched whole: the wait for a first byte exceeds the transfer."""

END_BYTES = 64 << 10
"""The number of bytes at the end of a larger table that are fetched first, for the footer (24 bytes
per block)."""

BLOCK_ROWS = 4096
"""The number of rows in a block, which has all their columns; a request fetches whole blocks."""

GAP_BYTES = 64 << 10
"""The distance, in bytes, up to which neighbouring ranges are fetched as one."""

AT_ONCE = 16
"""The number of files that an item reads concurrently: requests mostly wait for a first byte."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def concurrent_map(
    read: Callable[[Item], Result], items: Iterable[Item], *, where: AnyPath
) -> list[Result]:
    """Return the result of `read` for each item, in order; read items behind a URL concurrently.

    Args:
        read: Reads one item; for items behind a URL it is called from several threads.
        items: The items to read.
        where: A path in the same storage.
    """
    if not isinstance(where, RemotePath):
        return [read(item) for item in items]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(read, items))


_size = lru_cache(maxsize=1 << 16)(file_size)
"""The sizes of finished files, each looked up once per process."""


def forget_sizes() -> None:
    """Forget known sizes, because between stages a file may be rewritten under the same name."""
    _size.cache_clear()


class SparseFile:
    """A file whose parts are fetched before they are used; `data` is uint8[size].

    On a disk the file is memory-mapped, and fetch and release do nothing. Behind a URL `data` is
    zero where nothing has been fetched yet.
    """

    def __init__(self, path: AnyPath) -> None:
        """Memory-map a file on a disk, or look up the size of a file behind a URL.

        Raises:
            DamageError: There is no such file.
            UserError: The storage does not respond.
        """
        self._remote = path if isinstance(path, RemotePath) else None
        if self._remote is None:
            self.data = map_bytes(path)
            return
        size = _size(self._remote)
        self._memory = mmap.mmap(-1, max(size, 1))
        self.data = np.frombuffer(self._memory, np.uint8, size)
        self._fetched = np.zeros((0, 2), np.int64)

    def fetch(self, ranges: np.ndarray) -> None:
        """Fetch the ranges that were not fetched before; ranges close together are fetched as one.

        Args:
            ranges: int64[n, 2], the first byte of each range and the byte after its last.
        """
        if self._remote is None:
            return
        size = len(self.data)
        if size <= SMALL_BYTES:
            ranges = np.array([[0, size]])
        wanted = join_ranges(ranges[ranges[:, 0] < ranges[:, 1]], gap=GAP_BYTES)
        missing = [pair for pair in wanted.tolist() if not self._has(*pair)]
        if not missing:
            return
        for (start, stop), data in zip(missing, self._remote.read_ranges(missing), strict=True):
            self._memory[start:stop] = data
        self._fetched = join_ranges(np.concatenate([self._fetched, np.array(missing)]), gap=0)

    def release(self, start: int, stop: int) -> None:
        """Free the memory of a range of bytes, which are fetched again when needed."""
        if self._remote is None:
            return
        first, last = -(-start // mmap.PAGESIZE), stop // mmap.PAGESIZE
        if first < last:
            length = (last - first) * mmap.PAGESIZE
            self._memory.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, length)
        left = np.concatenate([np.minimum(self._fetched, start), np.maximum(self._fetched, stop)])
        self._fetched = join_ranges(left[left[:, 0] < left[:, 1]], gap=0)

    def _has(self, start: int, stop: int) -> bool:
        index = int(np.searchsorted(self._fetched[:, 0], start, "right")) - 1
        return index >= 0 and bool(self._fetched[index, 1] >= stop)


class SparseTable:
    """A table in blocks, as write_table stored it, on a disk or behind a URL.

    First the footer is read, which has the positions of the blocks, and then the blocks that hold
    the requested rows. The layout is that of the Arrow IPC file format (File.fbs and Message.fbs of
    apache/arrow).
    """

    def __init__(self, path: AnyPath) -> None:
        """Fetch the footer.

        Raises:
            DamageError: There is no such file, or it is not a table.
        """
        self._path = path
        self._file = SparseFile(path)
        with reraise_as_damage(path):
            footer = self._footer()
            # pyarrow verifies a footer: our code only parses footers that pyarrow accepts.
            self._reader = open_reader(self._file.data, path)
            self._dictionaries = _blocks(footer, _DICTIONARIES)
            self._blocks = _blocks(footer, _BATCHES)
            self._check_blocks()
            self._spread = hash_range(self._reader.schema)

    def _footer(self) -> bytes:
        """Fetch and return the footer."""
        size = len(self._file.data)
        self._file.fetch(np.array([[max(0, size - END_BYTES), size]]))
        ending = self._file.data[-10:].tobytes()
        start = size - len(ending) - int.from_bytes(ending[:4], "little")
        if not ending.endswith(_MAGIC) or start < 0:
            raise ValueError("it has no footer")
        self._file.fetch(np.array([[start, size]]))
        return self._file.data[start : size - len(ending)].tobytes()

    def _check_blocks(self) -> None:
        """Check that each block is within the file and follows the previous one."""
        for blocks in (self._dictionaries, self._blocks):
            ends = np.concatenate([[0], blocks.ravel(), [len(self._file.data)]])
            if (ends[1:] < ends[:-1]).any():
                raise ValueError("its blocks overlap or are not in order")

    def rows(self, rows: slice) -> pa.Table:
        """Return only the rows from rows.start to rows.stop, not all rows of their blocks."""
        first = rows.start // BLOCK_ROWS
        table = self.read(first, -(-rows.stop // BLOCK_ROWS))
        rest = table.slice(rows.start - first * BLOCK_ROWS, rows.stop - rows.start)
        rest = rest.replace_schema_metadata()
        return copy_rows(rest) if isinstance(self._path, RemotePath) else rest

    @property
    def num_blocks(self) -> int:
        """The number of blocks; all except the last have BLOCK_ROWS rows."""
        return len(self._blocks)

    @property
    def block_bytes(self) -> int:
        """The size of a block in bytes; the last may be smaller."""
        return int(self._blocks[0, 1] - self._blocks[0, 0]) if len(self._blocks) else 0

    def release(self, first: int, last: int) -> None:
        """Free the memory of neighbouring blocks; nothing read from them may be in use."""
        self._file.release(int(self._blocks[first, 0]), int(self._blocks[last - 1, 1]))

    def read(self, first: int, last: int) -> pa.Table:
        """Return the rows of neighbouring blocks, which are one range of the file."""
        last = min(last, len(self._blocks))
        if first < last:
            run = [self._blocks[first, 0], self._blocks[last - 1, 1]]
            self._file.fetch(np.concatenate([self._dictionaries, [run]]))
        with reraise_as_damage(self._path):
            batches = [self._reader.get_batch(number) for number in range(first, last)]
            if any(
                len(batch) != BLOCK_ROWS
                for number, batch in enumerate(batches, first)
                if number < len(self._blocks) - 1
            ):
                raise ValueError(f"a block does not have {BLOCK_ROWS} rows")
            return check_buffers(pa.Table.from_batches(batches, self._reader.schema))

    def keys(self, first: int, last: int, key: str) -> np.ndarray:
        """Return the keys (uint64) of the rows of neighbouring blocks, which are sorted."""
        table = self.read(first, last)
        with reraise_as_damage(self._path):
            return sorted_keys(table, key)

    def row_of(self, key: str, bound: int) -> int:
        """Return the first row whose key is not below a bound; the table is sorted by the key.

        Keys are uniformly distributed hashes (uint64): the k-th of n is near k / n of their range
        (hash_range), give or take about the square root of n rows. So the blocks around that guess
        are fetched, and further blocks if they do not contain the row.
        """
        num, low, high = len(self._blocks), self._spread.low, self._spread.high
        if bound <= low or not num:
            return 0
        rows = num * BLOCK_ROWS - BLOCK_ROWS // 2  # the last block is assumed to be half full
        guess = rows * (min(bound, high) - low) // (high - low)
        slack = 64 + 2 * int(rows**0.5)
        while True:
            first = min(max(0, guess - slack) // BLOCK_ROWS, num - 1)
            last = min((guess + slack) // BLOCK_ROWS + 1, num)
            values = self.keys(first, last, key)
            row = len(values)
            if bound < 2**64:
                row = int(np.searchsorted(values, np.uint64(bound)))
            if (row or not first) and (row < len(values) or last == num):
                return first * BLOCK_ROWS + row
            slack *= 4


def hash_range(schema: pa.Schema) -> Range:
    """Return the range of the hashes that a table is sorted by; by default all hashes.

    Raises:
        ValueError: the range in the schema is not valid.
        KeyError: a bound is missing in the schema.
    """
    if not schema.metadata:
        return FULL_RANGE
    low, high = (int(schema.metadata[name]) for name in (b"low", b"high"))
    if not FULL_RANGE.low <= low < high <= FULL_RANGE.high:
        raise ValueError(f"{low} to {high} is not a range of hashes")
    return Range(low=low, high=high)


def sorted_keys(table: pa.Table, key: str) -> np.ndarray:
    """Return the column (uint64) by which a table is sorted.

    Raises:
        ValueError: the column is not a sorted key.
    """
    column = table[key]
    if column.type != pa.uint64() or column.null_count:
        raise ValueError(f"its column {key!r} does not contain hashes")
    keys: np.ndarray = column.to_numpy()
    if (keys[1:] < keys[:-1]).any():
        raise ValueError(f"it is not sorted by {key!r}")
    return keys


def copy_rows(table: pa.Table) -> pa.Table:
    """Copy a table so that it keeps only the memory of its rows, because an item keeps many tables.

    Otherwise rows share the dictionaries of their table, and so keep its whole buffer alive.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


def join_ranges(ranges: np.ndarray, *, gap: int) -> np.ndarray:
    """Return sorted ranges (int64[n, 2]); join those that overlap or whose gap is at most `gap`."""
    if not len(ranges):
        return ranges
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    ends = np.maximum.accumulate(ranges[:, 1])
    first = np.ones(len(ranges), bool)
    first[1:] = ranges[1:, 0] > ends[:-1] + gap
    starts = np.flatnonzero(first)
    return np.stack([ranges[starts, 0], ends[np.append(starts[1:], len(ranges)) - 1]], axis=1)


_MAGIC = b"ARROW1"
_DICTIONARIES, _BATCHES = 2, 3
"""The numbers of the footer's fields that list dictionaries and batches."""

_BLOCK = np.dtype(
    {
        "names": ["offset", "metadata", "body"],
        "formats": ["<i8", "<i4", "<i8"],
        "offsets": [0, 8, 16],
        "itemsize": 24,
    }
)


def _blocks(footer: bytes, field: int) -> np.ndarray:
    """Return the start and end (int64[n, 2]) of the blocks that a field of the footer lists."""

    def number(offset: int, size: int) -> int:
        return int.from_bytes(footer[offset : offset + size], "little")

    # A flatbuffer: a table has a list of the offsets of its fields; a field that is a vector points
    # to its length, which its items follow.
    table = number(0, 4)
    offsets = table - number(table, 4)
    slot = 4 + 2 * field
    offset = number(offsets + slot, 2) if slot < number(offsets, 2) else 0
    if not offset:
        return np.zeros((0, 2), np.int64)
    vector = table + offset + number(table + offset, 4)
    blocks = np.frombuffer(footer, _BLOCK, number(vector, 4), vector + 4)
    starts = blocks["offset"]
    return np.stack([starts, starts + blocks["metadata"] + blocks["body"]], axis=1)
