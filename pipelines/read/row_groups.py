"""The row groups of a Parquet file: their rows, their bytes, and the runs that become splits.

The file is cut at the first bytes of its row groups into ranges that cover it: the bytes before the
first group belong to the first range, and the footer, which follows the last group, belongs to the
last range.
"""

import io
import itertools
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.read.files import open_input, read_exactly, readable
from shards.errors import UserError
from shards.storage.arrow import check_parquet
from shards.storage.files import crc32c_of

HELD_BYTES = 64 << 20
"""The size up to which a row group is read once, sequentially, and decoded from memory."""
_BLOCK_BYTES = 4 << 20
_BUFFER_BYTES = 1 << 20


def open_parquet(file: "RangeFile | BinaryIO", path: str) -> pq.ParquetFile:
    """Return a reader of an open Parquet file.

    Raises:
        UserError: The file is not a Parquet file, or its footer is damaged.
    """
    try:
        table = pq.ParquetFile(
            file, buffer_size=_BUFFER_BYTES, page_checksum_verification=True, pre_buffer=False
        )
        _check_footer(table)
        return table
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(file, RangeFile) and file.error:
            raise file.error from error
        if isinstance(error, OSError) and error.errno:  # an error of the disk, not of the content
            raise
        reason = " ".join(str(error).split()).rstrip(".")
        if isinstance(error, UnicodeDecodeError):
            reason = f"the name of a column is not UTF-8: {error.object!r}"
        raise UserError(
            f"The input {path} cannot be read as Parquet: {reason}. The footer at the end of the "
            "file locates the rows, so without it nothing can be read. Fetch the file again, or "
            "leave it out."
        ) from error


def num_rows(path: str) -> int:
    """Return the number of rows of a Parquet file.

    Raises:
        UserError: See `open_parquet`.
    """
    with open_input(path) as file, readable(path):
        return int(open_parquet(file, path).metadata.num_rows)


def _check_footer(table: pq.ParquetFile) -> None:
    """Check properties of a file that pyarrow does not verify.

    Raises:
        ValueError: The name of a column is not UTF-8, or the row counts contradict each other.
        OSError: The description of a column makes no sense.
    """
    table.schema_arrow.names  # noqa: B018 - this decodes the names
    rows = first_rows(table.metadata)
    if rows != sorted(rows) or rows[-1] != table.metadata.num_rows:
        raise ValueError(
            f"it has {table.metadata.num_rows} rows, and its row groups have {rows[-1]}"
        )
    check_parquet(table.metadata)


def first_rows(metadata: pq.FileMetaData) -> list[int]:
    """Return the index of the first row of each row group, followed by the number of rows."""
    counts = (metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    return list(itertools.accumulate(counts, initial=0))


def first_bytes(metadata: pq.FileMetaData, file_bytes: int) -> list[int]:
    """Return the offset of each row group's range, followed by the size of the file.

    If the groups are not stored in order, the first range contains all bytes, so the file is not
    cut.
    """
    groups = range(metadata.num_row_groups)
    edges = [0, *(_first_page(metadata.row_group(group)) for group in groups[1:]), file_bytes]
    if groups and edges != sorted(edges):
        return [0, *[file_bytes] * len(groups)]
    return edges


def _first_page(group: pq.RowGroupMetaData) -> int:
    columns = (group.column(index) for index in range(group.num_columns))
    # Some writers store 0 if there is no dictionary.
    pages = ((each.data_page_offset, each.dictionary_page_offset) for each in columns)
    return min((min(page, first or page) for page, first in pages), default=0)


def row_ranges(
    metadata: pq.FileMetaData, *, file_bytes: int, split_bytes: int
) -> list[tuple[int, int]]:
    """Return runs of whole row groups, as ranges of rows with about `split_bytes` bytes each.

    A run ends with the group that makes it reach this size; a remainder shorter than half of the
    size joins the last run. There is at least one run, which is empty if the file has no rows.
    """
    rows, edges = first_rows(metadata), first_bytes(metadata, file_bytes)
    cuts, begin = [0], 0
    for row, edge in zip(rows[1:-1], edges[1:-1], strict=True):
        near_end = 2 * (file_bytes - edge) < split_bytes
        if edge - begin >= split_bytes and not near_end and cuts[-1] < row < rows[-1]:
            cuts.append(row)
            begin = edge
    return list(itertools.pairwise([*cuts, rows[-1]]))


def groups_in(
    metadata: pq.FileMetaData, file_bytes: int, *, start: int, end: int
) -> list[tuple[int, tuple[int, int]]]:
    """Return the row groups of a run of rows [start, end), each with its range of bytes.

    The ranges have no gaps between them. Groups that have no rows are left out.
    """
    rows, edges = first_rows(metadata), first_bytes(metadata, file_bytes)
    groups = [
        group
        for group, (first, last) in enumerate(itertools.pairwise(rows))
        if start <= first < last <= end
    ]
    if not groups:  # the file has no rows
        return []
    cuts = [edges[group] for group in groups]
    cuts[0] = cuts[0] if start else 0
    cuts.append(file_bytes if end == rows[-1] else edges[groups[-1] + 1])
    return list(zip(groups, itertools.pairwise(cuts), strict=True))


class RangeFile(io.RawIOBase):
    """A file for pyarrow that can keep one range in memory, and computes the checksum of ranges.

    `error` keeps an error of the file itself, since pyarrow replaces such an error with a different
    one.
    """

    def __init__(self, handle: BinaryIO, path: str, *, file_bytes: int) -> None:
        self.crc32c = 0
        """The checksum of all ranges that take() has read, in the order of the calls."""
        self.error: OSError | None = None
        self._handle = handle
        self._path = path
        self._file_bytes = file_bytes
        self._start = 0
        self._held = b""
        self._offset = 0

    def take(self, start: int, end: int) -> None:
        """Add a range to the checksum, and keep the range in memory unless it is large.

        Raises:
            UserError: The file has become shorter.
        """
        self._start, self._held = start, b""
        step = HELD_BYTES if end - start <= HELD_BYTES else _BLOCK_BYTES
        for offset in range(start, end, step):
            self._handle.seek(offset)
            block = read_exactly(
                self._handle,
                min(step, end - offset),
                path=self._path,
                offset=offset,
                file_bytes=self._file_bytes,
            )
            self.crc32c = crc32c_of(block, self.crc32c)
            self._held = block if step == HELD_BYTES else b""

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, or all remaining bytes if `size` is negative."""
        left = max(0, self._file_bytes - self._offset)
        size = left if size < 0 else min(size, left)
        begin = self._offset - self._start
        if begin >= 0 and begin + size <= len(self._held):
            data = self._held[begin : begin + size]
        else:
            data = self._read(size)
        self._offset += len(data)
        return data

    def _read(self, size: int) -> bytes:
        try:
            self._handle.seek(self._offset)
            return self._handle.read(size)
        except OSError as error:
            self.error = error
            raise

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to an offset and return that offset."""
        self._offset = offset + (0, self._offset, self._file_bytes)[whence]
        return self._offset

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._offset

    def readable(self) -> bool:
        """Return True, as pyarrow requires."""
        return True

    def seekable(self) -> bool:
        """Return True, as pyarrow requires."""
        return True
