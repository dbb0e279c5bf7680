"""Reads Arrow IPC files, as Dataset.save_to_disk writes them: a record is a row, as in Parquet.

A file is one split: where its rows begin is not known before it is read.
"""

import io
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from pipelines.read.custom import Source
from pipelines.read.files import open_input, readable
from pipelines.read.parquet import BATCH_ROWS, ParquetReader
from pipelines.read.record import Damage, Record
from pipelines.read.stream import ByteStream, stream_of, whole_file
from shards.errors import UserError

_FILE = b"ARROW1\0\0"
"""What begins the form with a footer; a stream follows."""


class ArrowReader(ParquetReader):
    """Iterates over the rows of one file; iterated to its end, it knows `crc32c`."""

    def read(self, handle: BinaryIO) -> Iterator[Record | Damage]:
        """Yield the rows of the opened file.

        Raises:
            UserError: It is not an Arrow file.
        """
        stream = stream_of(handle, self._split)
        row = 0
        for batch in self._arrow_batches(stream):
            for start in range(0, len(batch), BATCH_ROWS):
                part = batch[start : start + BATCH_ROWS]
                yield from self._rows(part, row)
                row += len(part)
            self.done = stream.done
        if self.cut:
            yield Damage(row, 0, self.cut, b"")
        self.crc32c = stream.crc32c

    def _arrow_batches(self, stream: ByteStream) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a file up to its end or to damage, which makes it `cut`."""
        source = Source(stream)
        try:
            with open_arrow(io.BufferedReader(source), self._split.path) as batches:
                names = batches.schema.names
                chosen = [name for name in names if self._whole or self._needs(name)]
                for batch in batches:
                    yield batch.select(chosen)
        except (pa.ArrowException, OSError):
            if source.error:
                raise source.error from None
            self.cut = "truncated"
        while stream.read(1 << 20):
            pass
        self.cut = stream.failure or self.cut


def open_arrow(file: io.BufferedReader, path: str) -> pa.RecordBatchReader:
    """Return the batches of an opened Arrow file, of the form with a footer or without.

    Raises:
        UserError: It is not an Arrow file.
    """
    if file.peek(len(_FILE)).startswith(_FILE):
        file.read(len(_FILE))
    try:
        return pa.ipc.open_stream(file)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UserError(
            f"The input {path} cannot be read as Arrow: {reason}. Fetch the file again, or leave "
            "it out."
        ) from error


def arrow_columns(path: str) -> list[str]:
    """Return the columns of an Arrow file.

    Raises:
        UserError: It cannot be opened, or is not an Arrow file.
    """
    with open_input(path) as handle, readable(path):
        source = Source(stream_of(handle, whole_file(handle, path)))
        return [*open_arrow(io.BufferedReader(source), path).schema.names]
