"""The content of compressed files, piece by piece: gzip, zstd and bzip2.

A file may consist of several members (frames, streams), as the command line tools accept it. Each
generator here yields pieces of bounded size, however much a file expands, and returns why it had
to stop before the file's end, or None if it reached it. Content before damage is yielded.
"""

import bz2
import zlib
from collections.abc import Generator
from typing import BinaryIO, Literal

import zstandard

from pipelines.inputs.files import read_exactly
from shards.storage.files import crc32c_of

Failure = Literal["truncated", "bad-archive"]
Pieces = Generator[bytes, None, Failure | None]

SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2"}
"""How each ending of a file name says the file is compressed."""

_MAGICS = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd", "bzip2": b"BZh"}
_BLOCK_BYTES = 64 << 10
_PIECE_BYTES = 256 << 10
_BZIP2_STEP = 64
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_MAX_WINDOW_BYTES = 1 << 31
"""The largest window of a zstd frame (--long=31)."""
_RLE = 1


def compression(path: str) -> str | None:
    """Return the codec of a file by its name: gzip, zstd or bzip2; None if it is not compressed."""
    return next((codec for suffix, codec in SUFFIXES.items() if path.endswith(suffix)), None)


def is_compressed(head: bytes, codec: str) -> bool:
    """Return whether a file with these first bytes may be compressed with a codec."""
    if codec == "zstd" and int.from_bytes(head[:4], "little") in _SKIPPABLE:
        return True
    magic = _MAGICS[codec]
    return head[: len(magic)] == magic[: len(head)]


class StoredBytes:
    """The bytes of a compressed file as stored, with their checksum."""

    def __init__(self, handle: BinaryIO, path: str, *, file_bytes: int) -> None:
        self.taken = 0
        """How many bytes have been taken so far."""
        self.crc32c = 0
        """Checksum of the bytes taken."""
        self._handle = handle
        self._path = path
        self._file_bytes = file_bytes

    def take(self, size: int) -> bytes:
        """Return the next bytes, fewer than `size` only at the end of the file.

        Raises:
            UserError: The file is shorter than it was.
        """
        size = min(size, self._file_bytes - self.taken)
        data = read_exactly(
            self._handle, size, path=self._path, offset=self.taken, file_bytes=self._file_bytes
        )
        self.taken += size
        self.crc32c = crc32c_of(data, self.crc32c)
        return data

    def skip(self, size: int) -> bool:
        """Take `size` bytes and return True; if there are fewer, take them and return False."""
        while size and (data := self.take(min(size, _BLOCK_BYTES))):
            size -= len(data)
        return not size

    def drain(self) -> None:
        """Take the rest of the file."""
        self.skip(self._file_bytes - self.taken)


def unpack(stored: StoredBytes, codec: str) -> Pieces:
    """Yield the content of a compressed file in pieces; return why it ends too early, or None."""
    unpackers = {"gzip": _gunzip, "zstd": _unzstd, "bzip2": _bunzip2}
    return unpackers[codec](stored)


def _gunzip(stored: StoredBytes) -> Pieces:
    """Yield the content of all members; zeros may follow each, as gunzip accepts them."""
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
    """Yield what stands before the damage; the call that raised returned none of it."""
    for index in range(len(data)):
        try:
            piece = unpacker.decompress(data[index : index + 1])
        except zlib.error:
            return
        yield piece


def _bunzip2(stored: StoredBytes) -> Pieces:
    """Yield the content of all streams.

    A call that raises loses its output. So each call is given only a few bytes, and one that meets
    damage seldom holds the end of the good block before it.
    """
    data, index = stored.take(_BLOCK_BYTES), 0
    while data:
        if not is_compressed(data, "bzip2"):
            return "bad-archive"
        unpacker, index = bz2.BZ2Decompressor(), 0
        while not unpacker.eof:
            if unpacker.needs_input and index == len(data):
                data, index = stored.take(_BLOCK_BYTES), 0
                if not data:
                    return "truncated"
            step = data[index : index + _BZIP2_STEP] if unpacker.needs_input else b""
            index += len(step)
            try:
                yield unpacker.decompress(step, _PIECE_BYTES)
            except OSError:
                return "bad-archive"
        data = unpacker.unused_data + data[index:]
        if len(data) < len(_MAGICS["bzip2"]):
            data += stored.take(_BLOCK_BYTES)
    return None


def _unzstd(stored: StoredBytes) -> Pieces:
    """Yield the content of all frames.

    Each call is given one block, of at most 128 KiB of content, so that output is bounded and a
    call that raises loses no good block.
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


def _frame(stored: StoredBytes, magic: bytes, unpacker: "zstandard.ZstdDecompressionObj") -> Pieces:
    """Yield the content of one frame (RFC 8878, section 3.1.1); its magic number has been taken.

    magic  header             block ...                           checksum
    4      2 to 14            3: last, 2 bits of type, size; data  4, if the header says so
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
            last, block_type, size = bool(block & 1), block >> 1 & 3, block >> 3
            size = 1 if block_type == _RLE else size
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
    """Return the bytes of a frame's header after its descriptor (RFC 8878, section 3.1.1.1)."""
    single_segment = flags >> 5 & 1
    content_size = (single_segment, 2, 4, 8)[flags >> 6]
    return 1 - single_segment + (0, 1, 2, 4)[flags & 3] + content_size
