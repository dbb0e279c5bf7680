"""What is in a compressed file, piece by piece: gzip, zstd and bzip2.

A file may consist of several members (frames, streams), as their command line tools accept it. Each
of the generators here yields pieces of bounded size, however much a file expands, and returns why
it had to stop before the file's end, None if it had not. What stands before damage is yielded.
"""

import bz2
import zlib
from collections.abc import Generator
from typing import BinaryIO, Literal

import zstandard

from shards.errors import UserError
from shards.storage.files import crc32c_of

Failure = Literal["truncated", "bad-archive"]
Pieces = Generator[bytes, None, Failure | None]

SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2"}
"""How the names of compressed files end."""

_MAGICS = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd", "bzip2": b"BZh"}
_BLOCK_BYTES = 64 << 10
_PIECE_BYTES = 256 << 10
_BZIP2_STEP = 64
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_MAX_WINDOW_BYTES = 1 << 31
"""The largest window of a zstd frame (--long=31)."""
_RLE = 1


def compression(path: str) -> str | None:
    """Return how the file of this name is compressed, None for a plain one."""
    return next((kind for suffix, kind in SUFFIXES.items() if path.endswith(suffix)), None)


def is_compressed(head: bytes, kind: str) -> bool:
    """Return whether a file that begins so can be of this kind."""
    if kind == "zstd" and int.from_bytes(head[:4], "little") in _SKIPPABLE:
        return True
    magic = _MAGICS[kind]
    return head[: len(magic)] == magic[: len(head)]


class Stored:
    """The bytes of a compressed file as they lie there, with their checksum."""

    def __init__(self, handle: BinaryIO, path: str, *, file_bytes: int) -> None:
        self.at = 0
        """How many were taken."""
        self.crc32c = 0
        """Checksum of those."""
        self._handle = handle
        self._path = path
        self._file_bytes = file_bytes

    def take(self, size: int) -> bytes:
        """Return the next bytes, fewer than `size` only at the end of the file.

        Raises:
            UserError: The file is shorter than it was.
        """
        size = min(size, self._file_bytes - self.at)
        data = self._handle.read(size)
        if len(data) != size:
            raise UserError(
                f"The input {self._path} ended at byte {self.at + len(data)} of "
                f"{self._file_bytes}: it changed while it was read. Run the command again when "
                "it is complete."
            )
        self.at += size
        self.crc32c = crc32c_of(data, self.crc32c)
        return data

    def skip(self, size: int) -> bool:
        """Take so many bytes and return True, or all there are and return False."""
        while size and (data := self.take(min(size, _BLOCK_BYTES))):
            size -= len(data)
        return not size

    def drain(self) -> None:
        """Take all that is left."""
        self.skip(self._file_bytes - self.at)


def unpacked(stored: Stored, kind: str) -> Pieces:
    """Yield the content of a compressed file in pieces; return why it ends too early."""
    if kind == "gzip":
        return _gunzip(stored)
    return _unzstd(stored) if kind == "zstd" else _bunzip2(stored)


def _gunzip(stored: Stored) -> Pieces:
    """Yield the content of all members; zeros may follow each, as gunzip accepts it."""
    data = stored.take(_BLOCK_BYTES)
    while data:
        if not is_compressed(data, "gzip"):
            return "bad-archive"
        unpacker = zlib.decompressobj(wbits=31)
        while not unpacker.eof:
            data = data or stored.take(_BLOCK_BYTES)
            if not data:
                return "truncated"
            before = unpacker.copy()
            try:
                piece = unpacker.decompress(data, _PIECE_BYTES)
            except zlib.error:
                yield from _before_damage(before, data)
                return "bad-archive"
            data = unpacker.unconsumed_tail
            yield piece
        data = unpacker.unused_data.lstrip(b"\0")
        while not data and (block := stored.take(_BLOCK_BYTES)):
            data = block.lstrip(b"\0")
        if len(data) == 1:
            data += stored.take(_BLOCK_BYTES)
    return None


def _before_damage(unpacker: "zlib._Decompress", data: bytes) -> Generator[bytes, None, None]:
    """Yield what a failed call found before the damage: an exception takes its output along."""
    for at in range(len(data)):
        try:
            piece = unpacker.decompress(data[at : at + 1])
        except zlib.error:
            return
        yield piece


def _bunzip2(stored: Stored) -> Pieces:
    """Yield the content of all streams.

    An exception takes the output of its call along. So calls are given few bytes: then the end of
    a good block and the damage of the next one seldom meet in one.
    """
    data, at = stored.take(_BLOCK_BYTES), 0
    while data:
        if not is_compressed(data, "bzip2"):
            return "bad-archive"
        unpacker, at = bz2.BZ2Decompressor(), 0
        while not unpacker.eof:
            if unpacker.needs_input and at == len(data):
                data, at = stored.take(_BLOCK_BYTES), 0
                if not data:
                    return "truncated"
            step = data[at : at + _BZIP2_STEP] if unpacker.needs_input else b""
            at += len(step)
            try:
                yield unpacker.decompress(step, _PIECE_BYTES)
            except OSError:
                return "bad-archive"
        data = unpacker.unused_data + data[at:]
        if len(data) < len(_MAGICS["bzip2"]):
            data += stored.take(_BLOCK_BYTES)
    return None


def _unzstd(stored: Stored) -> Pieces:
    """Yield the content of all frames.

    Each call is given one block, which holds 128 KiB at most, so that output is bounded and a
    failed call takes no good block along.
    """
    unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    while magic := stored.take(4):
        number = int.from_bytes(magic, "little")
        if number in _SKIPPABLE:
            size = stored.take(4)
            if len(size) < 4 or not stored.skip(int.from_bytes(size, "little")):  # noqa: PLR2004 - an uint32
                return "truncated"
            continue
        if not is_compressed(magic, "zstd"):
            return "bad-archive"
        failure = yield from _frame(stored, magic, unpacker.decompressobj())
        if failure:
            return failure
    return None


def _frame(stored: Stored, magic: bytes, unpacker: "zstandard.ZstdDecompressionObj") -> Pieces:
    """Yield the content of one frame (RFC 8878, section 3.1.1); its magic number was taken.

    magic  header             block ...                           checksum
    4      2 to 14            3: last, 2 bits of kind, size; data  4, if the header says so
    """
    descriptor = stored.take(1)
    if not descriptor:
        return "truncated"
    flags = descriptor[0]
    parts = [magic + descriptor + stored.take(_header_bytes(flags))]
    last = False
    try:
        while not last:
            yield unpacker.decompress(b"".join(parts))
            head = stored.take(3)
            block = int.from_bytes(head, "little")
            last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
            size = 1 if kind == _RLE else size
            parts = [head, stored.take(size)]
            if len(head) < 3 or len(parts[1]) < size:  # noqa: PLR2004 - the bytes of a block's head
                yield unpacker.decompress(b"".join(parts))
                return "truncated"
        yield unpacker.decompress(b"".join(parts))
        checksum = stored.take(4) if flags & 4 else b""
        if checksum:
            yield unpacker.decompress(checksum)
    except zstandard.ZstdError:
        return "bad-archive"
    return None if unpacker.eof else "truncated"


def _header_bytes(flags: int) -> int:
    """Return how long a frame's header is behind its descriptor (RFC 8878, section 3.1.1.1)."""
    single_segment = flags >> 5 & 1
    content_size = (single_segment, 2, 4, 8)[flags >> 6]
    return 1 - single_segment + (0, 1, 2, 4)[flags & 3] + content_size
