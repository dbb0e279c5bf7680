"""A file behind a URL of which only what is asked for is fetched.

Its bytes are a mapping without a file, as long as the file is: pages that nothing was fetched into
take no memory. Arrow lays a table over it without touching the columns, so that their addresses
tell which bytes of the file some rows are made of.
"""

import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import numpy as np
import pyarrow as pa

from shards.errors import DamageError
from shards.remote import AnyPath, RemotePath

SMALL_BYTES = 256 << 10
"""A file up to this size is fetched whole: the time to the first byte outweighs it."""

END_BYTES = 32 << 10
"""Of a larger table this much is fetched of either end: schema, lengths, footer."""

GAP_BYTES = 64 << 10
"""Ranges closer than this are fetched as one."""

AT_ONCE = 16
"""Files that a task reads side by side: most of a request's time is waiting for its first byte."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(
    read: Callable[[Item], Result], items: Iterable[Item], *, where: AnyPath
) -> list[Result]:
    """Return what `read` returns for each item: one after the other, of a URL several at once.

    Args:
        read: Reads one item; of a URL from a thread of its own.
        items: What to read.
        where: Where they lie.
    """
    if not isinstance(where, RemotePath):
        return [read(item) for item in items]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(read, items))


@lru_cache(maxsize=1 << 16)
def _size(path: RemotePath) -> int:
    """Return the size of a file that does not change any more, asked for once in a process."""
    if (size := path.size()) < 0:
        raise DamageError(f"{path} is missing: restore it, or build it again.")
    return size


class SparseFile:
    """A file behind a URL; `data` is uint8[size], zero where nothing was fetched yet."""

    def __init__(self, path: RemotePath) -> None:
        """Ask for the size of a file.

        Raises:
            DamageError: There is none.
            UserError: The storage does not answer.
        """
        self._path = path
        size = _size(path)
        self._memory = mmap.mmap(-1, max(size, 1))
        self.data = np.frombuffer(self._memory, np.uint8, size)
        self._have = np.zeros((0, 2), np.int64)

    def need(self, ranges: np.ndarray) -> None:
        """Fetch ranges that are not here yet, those close together as one.

        Args:
            ranges: int64[n, 2], first byte and the byte after the last of each.
        """
        size = len(self.data)
        if size <= SMALL_BYTES:
            ranges = np.array([[0, size]])
        wanted = joined(ranges[ranges[:, 0] < ranges[:, 1]], gap=GAP_BYTES)
        missing = [pair for pair in wanted.tolist() if not self._has(*pair)]
        if not missing:
            return
        for (start, stop), data in zip(missing, self._path.read_ranges(missing), strict=True):
            self._memory[start:stop] = data
        self._have = joined(np.concatenate([self._have, np.array(missing)]), gap=0)

    def _has(self, start: int, stop: int) -> bool:
        at = int(np.searchsorted(self._have[:, 0], start, "right")) - 1
        return at >= 0 and bool(self._have[at, 1] >= stop)

    def table(self) -> pa.Table:
        """Return the file as an Arrow table whose columns are not here yet, but for dictionaries.

        Raises:
            DamageError: It holds no table.
        """
        size = len(self.data)
        self.need(np.array([[0, min(END_BYTES, size)], [max(0, size - END_BYTES), size]]))
        try:
            table = self._open()
        except (pa.ArrowException, OSError):
            self.need(np.array([[0, size]]))  # what describes the columns is longer than usual
            try:
                table = self._open()
            except (pa.ArrowException, OSError) as error:
                raise DamageError(
                    f"{self._path} is no Arrow file ({error}): restore it, or build it again."
                ) from error
        dictionaries = [
            chunk.dictionary
            for values in table.columns
            if pa.types.is_dictionary(values.type)
            for chunk in values.chunks
        ]
        self._need_arrays(dictionaries)
        return table

    def _open(self) -> pa.Table:
        return pa.ipc.open_file(pa.py_buffer(self.data)).read_all()

    def rows(
        self, table: pa.Table, rows: slice, *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return rows of the table, fetched."""
        chosen = table if columns is None else table.select(list(columns))
        part = chosen.slice(rows.start, rows.stop - rows.start)
        self._need_arrays([chunk for values in part.columns for chunk in values.chunks])
        return part

    def take(self, table: pa.Table, rows: np.ndarray) -> pa.Table:
        """Return some rows of the table, fetched, in the order given."""
        values = [chunk for column in table.columns for chunk in column.chunks]
        self._need_arrays([chunk.slice(row, 1) for chunk in values for row in rows.tolist()])
        return table.take(rows)

    def _need_arrays(self, arrays: Sequence[pa.Array]) -> None:
        """Fetch arrays: first the fixed parts of all, which say where their strings lie."""
        base = self.data.ctypes.data
        for extents in (_fixed_extents, _string_extents):
            found = [pair for array in arrays if len(array) for pair in extents(array)]
            if found:
                self.need(np.array(found, np.int64) - base)


def rows_near(file: SparseFile, table: pa.Table, key: str, *, low: int, high: int) -> slice:
    """Return the rows of a table with low <= key < high, for a sorted column of hashes (uint64)."""
    return slice(_row_of(file, table, key, bound=low), _row_of(file, table, key, bound=high))


def _row_of(file: SparseFile, table: pa.Table, key: str, *, bound: int) -> int:
    """Return the first row whose key is not below a bound.

    Hashes are even: the k-th of n lies near k / n of their range, off by about the square root of
    n. So the rows around a guess are fetched, and more where they prove too few.
    """
    num = len(table)
    if bound in (0, 2**64) or not num:
        return num if bound else 0
    guess, slack = num * bound >> 64, 64 + 4 * int(num**0.5)
    while True:
        near = slice(max(0, guess - slack), min(num, guess + slack))
        values = file.rows(table, near, columns=[key])[key].to_numpy()
        at = int(np.searchsorted(values, np.uint64(bound)))
        if (at or not near.start) and (at < len(values) or near.stop == num):
            return near.start + at
        slack *= 4


def joined(ranges: np.ndarray, *, gap: int) -> np.ndarray:
    """Return ranges (int64[n, 2]) sorted, those joined that overlap or are at most `gap` apart."""
    if not len(ranges):
        return ranges
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    ends = np.maximum.accumulate(ranges[:, 1])
    first = np.ones(len(ranges), bool)
    first[1:] = ranges[1:, 0] > ends[:-1] + gap
    starts = np.flatnonzero(first)
    return np.stack([ranges[starts, 0], ends[np.append(starts[1:], len(ranges)) - 1]], axis=1)


def _fixed_extents(array: pa.Array) -> Iterator[tuple[int, int]]:
    """Yield the addresses of what lies at fixed places: validity, numbers, offsets of strings."""
    validity, *others = array.buffers()[: 2 if not _offset_width(array.type) else 3]
    if validity is not None:
        yield _bits(validity, array)
    if pa.types.is_boolean(array.type):
        yield _bits(others[0], array)
        return
    kind = array.type.index_type if pa.types.is_dictionary(array.type) else array.type
    width, more = _offset_width(kind), 1
    if not width:
        width, more = kind.bit_width // 8, 0
    start = others[0].address + array.offset * width
    yield start, start + (len(array) + more) * width


def _string_extents(array: pa.Array) -> Iterator[tuple[int, int]]:
    """Yield the addresses of the bytes of strings, whose offsets are here."""
    width = _offset_width(array.type)
    if not width:
        return
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, f"<i{width}")[[array.offset, array.offset + len(array)]]
    if data is not None:
        yield data.address + int(ends[0]), data.address + int(ends[1])


def _offset_width(kind: pa.DataType) -> int:
    """Return the size of a string column's offsets, 0 for columns that have none."""
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return 8
    return 4 if pa.types.is_string(kind) or pa.types.is_binary(kind) else 0


def _bits(buffer: pa.Buffer, array: pa.Array) -> tuple[int, int]:
    return (
        buffer.address + array.offset // 8,
        buffer.address + -(-(array.offset + len(array)) // 8),
    )
