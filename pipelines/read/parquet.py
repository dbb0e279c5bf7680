"""Reads Parquet files: each row is a record.

Splits are runs of whole row groups. If a group cannot be decoded, its rows are lost, except those
before the damage.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.read.files import readable
from pipelines.read.input_format import InputFormat
from pipelines.read.reader import RecordReader
from pipelines.read.record import Damage, Record
from pipelines.read.row_groups import RangeFile, first_rows, groups_in, open_parquet
from pipelines.read.rows import BATCH_ROWS, TableRows, validated
from pipelines.read.split import FileSplit, check_unchanged, open_split

_BATCH_BYTES = 4 << 20


class ParquetReader(RecordReader):
    """Reads the rows of a split.

    Memory holds one row group as stored, up to `row_groups.HELD_BYTES`, and one batch of rows.
    """

    def __init__(self, split: FileSplit, input_format: InputFormat) -> None:
        """Create a reader of a split."""
        super().__init__(split, input_format)
        self._rows = TableRows(input_format)
        self._done = 0

    @property
    def done(self) -> int:
        """The number of rows of the split that have been read so far."""
        return self._done

    def _read(self) -> Iterator[Record | Damage]:
        split = self.split
        with open_split(split) as handle, readable(split.path):
            file = RangeFile(handle, split.path, file_bytes=split.file_bytes)
            table = open_parquet(file, split.path)
            rows = first_rows(table.metadata)
            for group, (start, end) in _groups(table.metadata, split):
                if not self.skips_checksum:
                    file.take(start, end)
                for item in self._group(table, file, group, first_row=rows[group]):
                    yield item
                    self._done = item.offset + 1 - split.start
            self.crc32c = file.crc32c
            check_unchanged(handle, split)

    def _group(
        self, table: pq.ParquetFile, file: RangeFile, group: int, *, first_row: int
    ) -> Iterator[Record | Damage]:
        """Yield the rows of a group; rows that cannot be decoded are damage."""
        row, end = first_row, first_row + table.metadata.row_group(group).num_rows
        for batch in self._batches(table, file, group):
            yield from self._rows.records(batch[: end - row], row)
            row = min(row + len(batch), end)
        row_bytes = _row_bytes(table, group)
        for lost in range(row, end):
            yield Damage(lost, 1, "bad-row-group", b"", row_bytes)

    def _batches(
        self, table: pq.ParquetFile, file: RangeFile, group: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a row group up to its end or to damage."""
        size = max(1, min(BATCH_ROWS, _BATCH_BYTES // _row_bytes(table, group)))
        columns = self._rows.columns(table.schema_arrow.names)
        try:
            for batch in table.iter_batches(
                batch_size=size, row_groups=[group], columns=columns, use_threads=False
            ):
                yield validated(batch)
        except (pa.ArrowException, OSError) as error:
            if file.error:
                raise file.error from error


def rows_crc32c(split: FileSplit) -> int:
    """Return the checksum that the reader of a split would compute."""
    with open_split(split) as handle, readable(split.path):
        file = RangeFile(handle, split.path, file_bytes=split.file_bytes)
        for _, (start, end) in _groups(open_parquet(file, split.path).metadata, split):
            file.take(start, end)
        return file.crc32c


def _groups(metadata: pq.FileMetaData, split: FileSplit) -> list[tuple[int, tuple[int, int]]]:
    return groups_in(metadata, split.file_bytes, start=split.start, end=split.end)


def _row_bytes(table: pq.ParquetFile, group: int) -> int:
    details = table.metadata.row_group(group)
    return 1 + int(max(0, details.total_byte_size) // max(1, details.num_rows))
