"""The bytes of a split, uncompressed, read from front to back."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol

from pipelines.inputs.files import read_exactly, readable
from pipelines.inputs.split import Split, check_unchanged, open_split
from pipelines.readers.compressed import Failure, StoredBytes, compression, unpack
from shards.storage.files import crc32c_of


class ByteStream(Protocol):
    """What the readers of text read from; offsets count bytes of the uncompressed file."""

    @property
    def offset(self) -> int:
        """Offset of the bytes that read() returns next."""

    @property
    def end(self) -> int:
        """Where the split ends; sys.maxsize in a compressed file, which is one split."""

    @property
    def size(self) -> int:
        """Where the file ends; sys.maxsize in a compressed file until its end has been read."""

    @property
    def failure(self) -> Failure | None:
        """Why a compressed file ends too early, once its end has been read."""

    @property
    def crc32c(self) -> int:
        """Checksum of those of the split's bytes, as stored, that have been read so far."""

    @property
    def done(self) -> int:
        """How many of the split's bytes, as stored, have been read so far."""

    def read(self, size: int) -> bytes:
        """Return the next bytes: at most `size` (1 or more), none at the end of the file.

        Raises:
            UserError: The file is shorter than it was.
        """


class PlainStream:
    """The bytes of a file that is not compressed, from some offset on."""

    failure = None

    def __init__(self, handle: BinaryIO, split: Split, *, offset: int) -> None:
        self.offset = offset
        self.end = split.end
        self.size = split.file_bytes
        self.crc32c = 0
        self._handle = handle
        self._split = split
        handle.seek(offset)

    @property
    def done(self) -> int:
        """Return how many of the split's bytes have been read so far."""
        return max(0, min(self.offset, self.end) - self._split.start)

    def read(self, size: int) -> bytes:
        """Return the next bytes: at most `size`, none at the end of the file.

        Raises:
            UserError: The file ends before its size.
        """
        offset, size = self.offset, min(size, self.size - self.offset)
        block = read_exactly(
            self._handle, size, path=self._split.path, offset=offset, file_bytes=self.size
        )
        in_split = slice(max(0, self._split.start - offset), max(0, self.end - offset))
        self.crc32c = crc32c_of(block[in_split], self.crc32c)
        self.offset += size
        return block


class UnpackedStream:
    """The content of a compressed file; no more of it is held than was asked for."""

    end = sys.maxsize

    def __init__(self, handle: BinaryIO, path: str, *, file_bytes: int, codec: str) -> None:
        self.offset = 0
        self.size = sys.maxsize
        self.failure: Failure | None = None
        self._stored = StoredBytes(handle, path, file_bytes=file_bytes)
        self._pieces = unpack(self._stored, codec)
        self._piece = b""
        self._unpacked = 0

    @property
    def crc32c(self) -> int:
        """Return the checksum of the bytes of the file that have been read so far."""
        return self._stored.crc32c

    @property
    def done(self) -> int:
        """Return how many bytes of the file have been read so far."""
        return self._stored.taken

    def read(self, size: int) -> bytes:
        """Return the next bytes: at most `size`, none where the content ends.

        Raises:
            UserError: The file ends before its size.
        """
        parts, missing = [], size
        while missing and self._fill():
            part, self._piece = self._piece[:missing], self._piece[missing:]
            parts.append(part)
            missing -= len(part)
        self.offset += size - missing
        return b"".join(parts)

    def _fill(self) -> bool:
        """Hold a piece that is not empty and return True, or return False at the end."""
        while not self._piece:
            if self.size < sys.maxsize:
                return False
            try:
                self._piece = next(self._pieces)
                self._unpacked += len(self._piece)
            except StopIteration as end:
                self.failure = end.value
                self._stored.drain()
                self.size = self._unpacked
        return True


@contextmanager
def open_stream(split: Split, *, offset: int = 0) -> Iterator[ByteStream]:
    """Open the file of a split and yield its bytes from `offset` on (0 if it is compressed).

    Raises:
        UserError: The file cannot be opened, or has changed since it was cut; the latter also
            when all has been read.
    """
    codec = compression(split.path)
    with open_split(split) as handle, readable(split.path):
        if codec is None:
            yield PlainStream(handle, split, offset=offset)
        else:
            yield UnpackedStream(handle, split.path, file_bytes=split.file_bytes, codec=codec)
        check_unchanged(handle, split)
