"""The bytes of a split, uncompressed, read from front to back."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol

from pipelines.inputs.files import open_input, readable
from pipelines.inputs.split import Split, open_split
from pipelines.readers.compressed import Failure, Stored, compression, is_compressed, unpacked
from shards.errors import UserError
from shards.storage.files import crc32c_of

_MAGIC_BYTES = 4


class ByteStream(Protocol):
    """What readers of text read; offsets count bytes of the uncompressed file."""

    @property
    def at(self) -> int:
        """Offset of what read() returns next."""

    @property
    def end(self) -> int:
        """Where the split ends; sys.maxsize in a compressed file, which is one split."""

    @property
    def size(self) -> int:
        """Where the file ends; sys.maxsize in a compressed file until its end was read."""

    @property
    def failure(self) -> Failure | None:
        """Why a compressed file ends too early, once its end was read."""

    @property
    def crc32c(self) -> int:
        """Checksum of the split's bytes as stored, of those that were read so far."""

    @property
    def done(self) -> int:
        """How many of the split's bytes as stored were read so far."""

    def read(self, size: int) -> bytes:
        """Return the next bytes, no more than `size` (at least 1), none at the end of the file.

        Raises:
            UserError: The file is shorter than it was.
        """


class PlainStream:
    """The bytes of a file that is not compressed, from some offset on."""

    failure = None

    def __init__(self, handle: BinaryIO, split: Split, *, at: int) -> None:
        self.at = at
        self.end = split.end
        self.size = split.file_bytes
        self.crc32c = 0
        self._handle = handle
        self._split = split
        handle.seek(at)

    @property
    def done(self) -> int:
        """Return how many of the split's bytes were read so far."""
        return max(0, min(self.at, self.end) - self._split.start)

    def read(self, size: int) -> bytes:
        """Return the next bytes, no more than `size`, none at the end of the file.

        Raises:
            UserError: The file ends before its size.
        """
        size = min(size, self.size - self.at)
        block = self._handle.read(size)
        if len(block) != size:
            raise UserError(
                f"The input {self._split.path} ended at byte {self.at + len(block)} of "
                f"{self.size}: it changed while it was read. Run the command again when it is "
                "complete."
            )
        inside = slice(max(0, self._split.start - self.at), max(0, self.end - self.at))
        self.crc32c = crc32c_of(block[inside], self.crc32c)
        self.at += size
        return block


class UnpackedStream:
    """The content of a compressed file, of which no more is held than what was asked for."""

    end = sys.maxsize

    def __init__(self, handle: BinaryIO, path: str, *, file_bytes: int, kind: str) -> None:
        self.at = 0
        self.size = sys.maxsize
        self.failure: Failure | None = None
        self._stored = Stored(handle, path, file_bytes=file_bytes)
        self._pieces = unpacked(self._stored, kind)
        self._piece = b""
        self._unpacked = 0

    @property
    def crc32c(self) -> int:
        """Return the checksum of the bytes that were read from the file so far."""
        return self._stored.crc32c

    @property
    def done(self) -> int:
        """Return how many bytes of the file were read so far."""
        return self._stored.at

    def read(self, size: int) -> bytes:
        """Return the next bytes, no more than `size`, none where the content ends.

        Raises:
            UserError: The file ends before its size.
        """
        parts, missing = [], size
        while missing and self._fill():
            part, self._piece = self._piece[:missing], self._piece[missing:]
            parts.append(part)
            missing -= len(part)
        self.at += size - missing
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
def open_stream(split: Split, *, at: int = 0) -> Iterator[ByteStream]:
    """Open the file of a split and yield its bytes from offset `at` on; 0 if it is compressed.

    Raises:
        UserError: The file cannot be opened, or changed since it was cut.
    """
    kind = compression(split.path)
    with open_split(split) as handle, readable(split.path):
        if kind is None:
            yield PlainStream(handle, split, at=at)
        else:
            yield UnpackedStream(handle, split.path, file_bytes=split.file_bytes, kind=kind)


def read_head(path: str, size: int) -> bytes:
    """Return the first bytes of a file, unpacked; fewer than `size` where its content ends.

    Raises:
        UserError: It cannot be opened, or its name says that it is compressed and it is not.
    """
    kind = compression(path)
    with open_input(path) as handle, readable(path):
        if kind is None:
            return handle.read(size)
        head = handle.read(_MAGIC_BYTES)
        if not is_compressed(head, kind):
            raise UserError(
                f"The input {path} is no {kind} archive, though its name says so: it begins with "
                f"{head!r}. Fetch it again, or give it a name that says what it is."
            )
        file_bytes = handle.seek(0, io.SEEK_END)
        handle.seek(0)
        return UnpackedStream(handle, path, file_bytes=file_bytes, kind=kind).read(size)
