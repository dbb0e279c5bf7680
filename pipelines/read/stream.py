"""Reads the uncompressed bytes of a split from front to back."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from pipelines.read.compressed import Failure, compression, decompress
from pipelines.read.files import read_exactly, readable
from pipelines.read.split import FileSplit, check_unchanged, open_split
from shards.storage.files import crc32c_of

_BLOCK_BYTES = 64 << 10


class PlainStream:
    """Reads the bytes of an uncompressed file, beginning at an offset."""

    failure = None

    def __init__(self, handle: BinaryIO, split: FileSplit, *, offset: int) -> None:
        self.offset = offset
        """The offset of the bytes that read() returns next."""
        self.end = split.end
        self.size = split.file_bytes
        self.crc32c = 0
        """The checksum of the split's bytes that have been read so far."""
        self._handle = handle
        self._split = split
        handle.seek(offset)

    @property
    def done(self) -> int:
        """The number of the split's bytes that have been read so far."""
        return max(0, min(self.offset, self.end) - self._split.start)

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer before the end of the file, and none at the end.

        Raises:
            UserError: The file has become shorter.
        """
        offset, size = self.offset, min(size, self.size - self.offset)
        block = read_exactly(
            self._handle, size, path=self._split.path, offset=offset, file_bytes=self.size
        )
        in_split = slice(max(0, self._split.start - offset), max(0, self.end - offset))
        self.crc32c = crc32c_of(block[in_split], self.crc32c)
        self.offset += size
        return block


class DecompressedStream:
    """Reads the content of a compressed file; memory holds the bytes of one call and one piece."""

    end = sys.maxsize

    def __init__(self, handle: BinaryIO, split: FileSplit, *, codec: str) -> None:
        self.offset = 0
        self.size = sys.maxsize
        """The end of the content; sys.maxsize until the end has been read."""
        self.failure: Failure | None = None
        """Why the content ends too early; None if it does not, or until its end has been read."""
        self._stored = PlainStream(handle, split, offset=0)
        self._pieces = decompress(self._stored, codec)
        self._piece = memoryview(b"")
        self._unpacked = 0

    @property
    def crc32c(self) -> int:
        """The checksum of the bytes of the file that have been read so far."""
        return self._stored.crc32c

    @property
    def done(self) -> int:
        """The number of bytes of the file that have been read so far."""
        return self._stored.done

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes; fewer before the end of the content, and none at the end.

        Raises:
            UserError: The file has become shorter.
        """
        parts, missing = [], size
        while missing and self._fill():
            part = bytes(self._piece[:missing])
            self._piece = self._piece[missing:]
            parts.append(part)
            missing -= len(part)
        self.offset += size - missing
        return b"".join(parts)

    def _fill(self) -> bool:
        """Load a piece that is not empty and return True, or return False at the end."""
        while not self._piece:
            if self.size < sys.maxsize:
                return False
            self._piece = memoryview(b"")  # only one piece is in memory at a time
            try:
                self._piece = memoryview(next(self._pieces))
                self._unpacked += len(self._piece)
            except StopIteration as end:
                self.failure = end.value
                skip_rest(self._stored)
                self.size = self._unpacked
        return True


ByteStream = PlainStream | DecompressedStream
"""The input of the text readers; offsets count bytes of the uncompressed file."""


def skip_rest(stream: ByteStream) -> int:
    """Read a stream to its end, as its checksum requires; return the number of bytes read."""
    length = 0
    while block := stream.read(_BLOCK_BYTES):
        length += len(block)
    return length


class StreamFile(io.RawIOBase):
    """Wraps a stream as a Python file object; `error` records why the file cannot be read."""

    def __init__(self, stream: ByteStream) -> None:
        self.error: Exception | None = None
        self._stream = stream

    def readable(self) -> bool:
        """Return True, as io requires."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes, and return their number."""
        try:
            block = self._stream.read(len(buffer))
        except Exception as error:
            self.error = error
            raise
        buffer[: len(block)] = block
        return len(block)


def stream_of(handle: BinaryIO, split: FileSplit, *, offset: int = 0) -> ByteStream:
    """Return a stream of an open file that begins at `offset`, or at 0 if it is compressed."""
    codec = compression(split.path)
    if codec is None:
        return PlainStream(handle, split, offset=offset)
    return DecompressedStream(handle, split, codec=codec)


def whole_file(handle: BinaryIO, path: str) -> FileSplit:
    """Return a split that contains the whole of an open file."""
    file_bytes = handle.seek(0, io.SEEK_END)
    return FileSplit(
        source="",
        path=path,
        relative="",
        file_bytes=file_bytes,
        start=0,
        end=file_bytes,
        mtime_ns=0,
    )


@contextmanager
def open_stream(split: FileSplit, *, offset: int = 0) -> Iterator[ByteStream]:
    """Open a split's file; yield a stream from `offset`, or from 0 if the file is compressed.

    Raises:
        UserError: The file cannot be opened, or has changed since it was cut; a change is also
            detected after the last read.
    """
    with open_split(split) as handle, readable(split.path):
        yield stream_of(handle, split, offset=offset)
        check_unchanged(handle, split)
