"""Reads Arrow IPC files, as Dataset.save_to_disk writes them: each row is a record, as in Parquet.

A file is one split, because the positions of its rows are unknown until it is read.
"""

import io
from collections.abc import Iterator

import pyarrow as pa

from pipelines.read.files import open_input, readable
from pipelines.read.input_format import InputFormat
from pipelines.read.reader import StreamReader
from pipelines.read.record import Damage, Record
from pipelines.read.rows import BATCH_ROWS, TableRows, validated
from pipelines.read.split import FileSplit
from pipelines.read.stream import ByteStream, StreamFile, skip_rest, stream_of, whole_file
from shards.errors import UserError

_FILE = b"ARROW1\0\0"
"""The first bytes of a file in the file format, which has a footer; the stream format lacks
them."""


class ArrowReader(StreamReader):
    """Reads the rows of one file."""

    def __init__(self, split: FileSplit, input_format: InputFormat) -> None:
        """Create a reader of a split."""
        super().__init__(split, input_format)
        self._rows = TableRows(input_format)

    def _records(self, stream: ByteStream) -> Iterator[Record | Damage]:
        row = 0
        for batch in self._batches(stream):
            for start in range(0, len(batch), BATCH_ROWS):
                part = batch[start : start + BATCH_ROWS]
                yield from self._rows.records(part, row)
                row += len(part)
        if self.truncation:
            yield Damage(row, 0, self.truncation, b"")

    def _batches(self, stream: ByteStream) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a file up to its end or to damage, which sets `truncation`."""
        source = StreamFile(stream)
        try:
            with open_arrow(io.BufferedReader(source), self.split.path) as batches:
                names = batches.schema.names  # one name may occur twice
                needed = set(self._rows.columns(names))
                chosen = [index for index, name in enumerate(names) if name in needed]
                for batch in batches:
                    yield validated(batch.select(chosen))
        except (pa.ArrowException, OSError):
            if source.error:
                raise source.error from None
            self.truncation = "truncated"
        skip_rest(stream)
        self.truncation = stream.failure or self.truncation


def open_arrow(file: io.BufferedReader, path: str) -> pa.RecordBatchReader:
    """Return the batches of an open Arrow file, in the file format or the stream format.

    Raises:
        UserError: The file is not an Arrow file.
    """
    if file.peek(len(_FILE)).startswith(_FILE):
        file.read(len(_FILE))
    try:
        batches = pa.ipc.open_stream(file)
        _ = batches.schema.names  # decodes the names, which may contain any bytes
        return batches
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UserError(
            f"The input {path} cannot be read as Arrow: {reason}. Fetch the file again, or leave "
            "it out."
        ) from error


def arrow_columns(path: str) -> list[str]:
    """Return the names of the columns of an Arrow file.

    Raises:
        UserError: The file cannot be opened, or is not an Arrow file.
    """
    with open_input(path) as handle, readable(path):
        source = StreamFile(stream_of(handle, whole_file(handle, path)))
        return [*open_arrow(io.BufferedReader(source), path).schema.names]
