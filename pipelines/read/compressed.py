"""The content of compressed files, piece by piece: gzip, zstd, bzip2 and xz.

A file may consist of several members (frames, streams), as the command line tools accept it.
"""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Literal, Protocol

import zstandard

Failure = Literal["truncated", "bad-archive"]

SUFFIXES = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}
"""How each ending of a file name says the file is compressed."""

_MAGICS = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd", "bzip2": b"BZh", "xz": b"\xfd7zXZ"}
_MAGIC_BYTES = 4
_BLOCK_BYTES = 64 << 10
_PIECE_BYTES = 16 << 10
_STEP_BYTES = 2 << 10
_FIRST_BYTES = 64
"""Size of the first pieces and steps, so that damage costs little of a small file."""
_GROWTH = 16
"""A piece is at most this part of the bytes read before it."""
_CHECKSUM_BYTES = 4
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_MAX_WINDOW_BYTES = 1 << 31
"""The largest window of a zstd frame (--long=31), and most memory for a stream of xz."""
_UNPACKERS: Mapping[str, Callable[[], Any]] = {
    "bzip2": bz2.BZ2Decompressor,
    "zstd": lambda: zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj(),
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_WINDOW_BYTES),
}


class Stored(Protocol):
    """The bytes of a compressed file."""

    offset: int
    """Offset of the bytes that read() returns next."""
    size: int
    """Size of the file."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, fewer than `size` only at the end of the file."""


def compression(path: str) -> str | None:
    """Return the codec of a file by the ending of its name; None if it is not compressed."""
    path = path.lower()
    return next((codec for suffix, codec in SUFFIXES.items() if path.endswith(suffix)), None)


def is_compressed(head: bytes, codec: str) -> bool:
    """Return whether a file with these first bytes may be compressed with a codec."""
    if codec == "zstd" and int.from_bytes(head[:4], "little") in _SKIPPABLE:
        return True
    magic = _MAGICS[codec]
    return head[: len(magic)] == magic[: len(head)]


def unpack(stored: Stored, codec: str) -> Generator[bytes, None, Failure | None]:
    """Yield the content of a compressed file in pieces of bounded size, however much it expands.

    Returns:
        Why it had to stop before the file's end, None if it reached it. Content before damage is
        yielded, except for the last few KiB at most.
    """
    try:
        yield from _gunzip(stored) if codec == "gzip" else _members(stored, codec)
    except EOFError:
        return "truncated"
    except (OSError, zlib.error, zstandard.ZstdError, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno:  # of the disk, not of the content
            raise
        return "bad-archive"
    return None


def _gunzip(stored: Any) -> Iterator[bytes]:
    """Yield the content of all members; zeros may follow each, as gunzip accepts them."""
    size = _FIRST_BYTES
    with gzip.GzipFile(fileobj=stored) as file:
        while piece := file.read1(size):
            yield piece
            size = min(size + len(piece) // _GROWTH + 1, _PIECE_BYTES)


def _members(stored: Stored, codec: str) -> Iterator[bytes]:
    """Yield the content of all frames (zstd) or streams (bzip2, xz); raise where they are damaged.

    A call that raises loses its output, and zstandard's has no bound. So each is given only a few
    bytes: one that meets damage seldom holds the end of the good block before it, and a block of
    zstd, of at most 128 KiB, takes four bytes or more.

    Raises:
        EOFError: The last one has no end.
        OSError, ZstdError: One is damaged, or something else is in its place.
    """
    bound = () if codec == "zstd" else (_PIECE_BYTES,)
    steps = _steps(stored)
    data = next(steps, b"")
    while data:
        if len(data) < _MAGIC_BYTES:
            data += next(steps, b"")
        if not is_compressed(data, codec):
            raise OSError(f"no {codec} archive")
        unpacker = _UNPACKERS[codec]()
        while not unpacker.eof:
            if getattr(unpacker, "needs_input", True) and not data:
                data = next(steps, b"")
                if not data:
                    raise EOFError
            yield unpacker.decompress(data, *bound)
            data = unpacker.unused_data
        data = data or next(steps, b"")
        if codec == "xz":
            data = _behind_zeros(data, steps)


def _behind_zeros(data: bytes, steps: Iterator[bytes]) -> bytes:
    """Return the next bytes of a file that follow the zeros which may pad a stream of xz."""
    while data and not (data := data.lstrip(b"\0")):
        data = next(steps, b"")
    return data


def _steps(stored: Stored) -> Iterator[bytes]:
    """Yield the bytes of a file in small steps; the checksum that may end it is one of its own."""
    while block := stored.read(_BLOCK_BYTES):
        size = _FIRST_BYTES if stored.offset <= _BLOCK_BYTES else _STEP_BYTES
        is_last = stored.offset == stored.size
        end = max(0, len(block) - _CHECKSUM_BYTES) if is_last else len(block)
        for at in range(0, end, size):
            yield block[at : min(at + size, end)]
        if is_last:
            yield block[end:]
