"""Reads files in a format of a corpus's own: its function makes records of a stream of bytes.

A file is one split. Records are numbered as the function yields them: a record's offset is its
number, its length 1, as for the rows of a table.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from pipelines.read.record import (
    MAX_RECORD_BYTES,
    RAW_BYTES,
    WHOLE_BYTES,
    Damage,
    Reason,
    Record,
)
from pipelines.read.split import FileSplit
from pipelines.read.stream import ByteStream, open_stream
from shards.errors import UserError


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """What a reading function yields where a record should be and cannot be read."""

    reason: Reason = "bad-archive"
    raw: bytes = b""
    """Its first bytes, for rejects/."""


Read = Callable[[BinaryIO], Iterable[Mapping[str, Any] | BrokenRecord]]
"""Yields what a file holds, from an unpacked stream that can be read forwards alone."""


class CustomReader:
    """Iterates over one file; iterated to its end, it knows `crc32c`."""

    def __init__(
        self, split: FileSplit, read: Read, *, max_record_bytes: int = MAX_RECORD_BYTES
    ) -> None:
        """Make a reader.

        Args:
            split: The file, whole.
            read: Makes records of its bytes.
            max_record_bytes: A record with more bytes and characters is damage.
        """
        self.crc32c: int | None = None
        """Checksum of the file's bytes as stored."""
        self.cut: Reason | None = None
        """Why an unknown number of records is missing at the end; None if none is."""
        self._split = split
        self._read = read
        self._max_bytes = max_record_bytes
        self._stream: ByteStream

    @property
    def done(self) -> int:
        """Return how many bytes of the file have been read so far; valid during iteration."""
        return self._stream.done

    def __iter__(self) -> Iterator[Record | Damage]:
        """Yield the records of the file, in the order in which they are made.

        Raises:
            UserError: The file cannot be read, has changed since it was cut into splits, or its
                function fails on it.
        """
        with open_stream(self._split) as stream:
            yield from self.read(stream)
            self.crc32c = stream.crc32c

    def read(self, stream: ByteStream) -> Iterator[Record | Damage]:
        """Yield the records of the opened file.

        Raises:
            UserError: It cannot be read, or its function fails on it.
        """
        self._stream = stream
        number = -1
        for number, item in enumerate(self._items(stream)):
            yield self._numbered(number, item)
        self.cut = stream.failure
        if stream.failure:
            yield Damage(number + 1, 0, stream.failure, b"")

    def _items(self, stream: ByteStream) -> Iterator[Mapping[str, Any] | BrokenRecord]:
        source = Source(stream)
        try:
            yield from self._read(io.BufferedReader(source, io.DEFAULT_BUFFER_SIZE))
            while stream.read(io.DEFAULT_BUFFER_SIZE):  # the checksum is that of the whole file
                pass
        except UserError as error:
            if source.error:  # whatever became of it in the function
                raise source.error from error
            raise UserError(f"The input {self._split.path}: {error}") from error

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


class Source(io.RawIOBase):
    """A stream as Python's file objects have it; it remembers why the file cannot be read."""

    def __init__(self, stream: ByteStream) -> None:
        self.error: Exception | None = None
        self._stream = stream

    def readable(self) -> bool:
        """Return True; io asks."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes, and return how many those are."""
        try:
            block = self._stream.read(len(buffer))
        except Exception as error:
            self.error = error
            raise
        buffer[: len(block)] = block
        return len(block)
