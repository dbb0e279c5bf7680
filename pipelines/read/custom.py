"""Reads files in a custom format: a function of the corpus makes records of a stream of bytes.

A file is one split. Records are numbered as the function yields them: a record's offset is its
number, its length 1, as for the rows of a table.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from pipelines.read.reader import StreamReader
from pipelines.read.record import (
    MAX_RECORD_BYTES,
    RAW_BYTES,
    WHOLE_BYTES,
    Damage,
    Reason,
    Record,
)
from pipelines.read.split import FileSplit
from pipelines.read.stream import ByteStream, StreamFile, skip_rest
from shards.errors import UserError


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """What a reading function yields where a record should be and cannot be read."""

    reason: Reason = "bad-archive"
    raw: bytes = b""
    """Its first bytes, for rejects/."""


Read = Callable[[BinaryIO], Iterable[Mapping[str, Any] | BrokenRecord]]
"""Yields what a file holds, from an unpacked stream that can be read forwards alone."""


class CustomReader(StreamReader):
    """Reads one file; a record with more bytes and characters than allowed is damage."""

    def __init__(
        self, split: FileSplit, read: Read, *, max_record_bytes: int = MAX_RECORD_BYTES
    ) -> None:
        """Make a reader; `read` makes records of the bytes of the file."""
        super().__init__(split, max_record_bytes=max_record_bytes)
        self._function = read

    def _records(self, stream: ByteStream) -> Iterator[Record | Damage]:
        number = -1
        for number, item in enumerate(self._items(stream)):
            yield self._numbered(number, item)
        self.cut = stream.failure
        if stream.failure:
            yield Damage(number + 1, 0, stream.failure, b"")

    def _items(self, stream: ByteStream) -> Iterator[Mapping[str, Any] | BrokenRecord]:
        source = StreamFile(stream)
        try:
            yield from self._function(io.BufferedReader(source, io.DEFAULT_BUFFER_SIZE))
            skip_rest(stream)
        except UserError as error:
            if source.error:  # whatever became of it in the function
                raise source.error from error
            raise UserError(f"The input {self.split.path}: {error}") from error

    def _numbered(self, number: int, item: Mapping[str, Any] | BrokenRecord) -> Record | Damage:
        if isinstance(item, BrokenRecord):
            return Damage(number, 1, item.reason, item.raw[:WHOLE_BYTES])
        values = [value for value in item.values() if isinstance(value, str | bytes)]
        # The raw bytes of a page say how large it is, and what to keep of it if it is rejected.
        raw = max((value for value in values if isinstance(value, bytes)), key=len, default=b"")
        size = sum(map(len, values))
        if size > self._max_bytes:
            return Damage(number, 1, "too-long", raw[:RAW_BYTES], size)
        return Record(number, 1, item, raw)
