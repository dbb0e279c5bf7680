"""Decompresses gzip, zstd, bzip2 and xz files piece by piece.

Like the command-line tools, it accepts files with several members (frames, streams).
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
"""The compression format of each file name extension."""

MAGICS = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd", "bzip2": b"BZh", "xz": b"\xfd7zXZ"}
"""The first bytes of a file in each compression format."""

_MAGIC_BYTES = 4
_BLOCK_BYTES = 64 << 10
_PIECE_BYTES = 16 << 10
_STEP_BYTES = 2 << 10
_FIRST_BYTES = 64
"""The size of the first pieces and steps; it is small so that damage in a small file loses
little."""
_GROWTH = 16
"""The ratio of the number of bytes read so far to the size of the next piece."""
_CHECKSUM_BYTES = 4
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_MAX_WINDOW_BYTES = 1 << 31
"""The maximum window size of a zstd frame (--long=31) and the maximum memory for an xz stream."""
_DECOMPRESSORS: Mapping[str, Callable[[], Any]] = {
    "bzip2": bz2.BZ2Decompressor,
    "zstd": lambda: zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj(),
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_WINDOW_BYTES),
}


class Stored(Protocol):
    """The bytes of a compressed file."""

    offset: int
    """The offset of the bytes that read() returns next."""
    size: int
    """The size of the file in bytes."""

    def read(self, size: int, /) -> bytes:
        """Return the next `size` bytes; fewer only at the end of the file."""


def compression(path: str) -> str | None:
    """Return the codec that a path's extension stands for; None if there is no such codec."""
    path = path.lower()
    return next((codec for suffix, codec in SUFFIXES.items() if path.endswith(suffix)), None)


def is_compressed(head: bytes, codec: str) -> bool:
    """Return whether a file that begins with `head` may be compressed with a codec."""
    if codec == "zstd" and int.from_bytes(head[:4], "little") in _SKIPPABLE:
        return True
    magic = MAGICS[codec]
    return head[: len(magic)] == magic[: len(head)]


def decompress(stored: Stored, codec: str) -> Generator[bytes, None, Failure | None]:
    """Yield the content of a compressed file in pieces of bounded size, however much it expands.

    Returns:
        The reason for stopping before the end of the file; None if the end was reached. Content
        before damage is yielded, except for a few KiB at most.
    """
    try:
        yield from _gunzip(stored) if codec == "gzip" else _members(stored, codec)
    except EOFError:
        return "truncated"
    except (OSError, zlib.error, zstandard.ZstdError, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno:  # The disk failed.
            raise
        return "bad-archive"
    return None


def _gunzip(stored: Any) -> Iterator[bytes]:
    """Yield the content of all gzip members; like gunzip, accept zeros after each member."""
    size = _FIRST_BYTES
    with gzip.GzipFile(fileobj=stored) as file:
        while piece := file.read1(size):
            yield piece
            size = min(size + len(piece) // _GROWTH + 1, _PIECE_BYTES)


def _members(stored: Stored, codec: str) -> Iterator[bytes]:
    """Yield the content of all frames (zstd) or streams (bzip2, xz).

    A call that raises loses its output, and zstandard does not limit the output of a call. So each
    call gets only a few bytes: a call that meets damage then seldom contains the end of the good
    block before it. A zstd block expands to at most 128 KiB and takes at least four bytes.

    Raises:
        EOFError: The last frame or stream is incomplete.
        OSError, ZstdError: A frame or stream is damaged, or other data follows.
    """
    bound = () if codec == "zstd" else (_PIECE_BYTES,)
    steps = _steps(stored)
    data = next(steps, b"")
    while data:
        if len(data) < _MAGIC_BYTES:
            data += next(steps, b"")
        if not is_compressed(data, codec):
            raise OSError(f"no {codec} archive")
        decompressor = _DECOMPRESSORS[codec]()
        while not decompressor.eof:
            if getattr(decompressor, "needs_input", True) and not data:
                data = next(steps, b"")
                if not data:
                    raise EOFError
            yield decompressor.decompress(data, *bound)
            data = decompressor.unused_data
        data = data or next(steps, b"")
        if codec == "xz":
            data = _behind_zeros(data, steps)


def _behind_zeros(data: bytes, steps: Iterator[bytes]) -> bytes:
    """Skip the zeros that may pad an xz stream, and return the bytes that follow the zeros."""
    while data and not (data := data.lstrip(b"\0")):
        data = next(steps, b"")
    return data


def _steps(stored: Stored) -> Iterator[bytes]:
    """Yield the bytes of a file in small steps; a checksum at the end is a separate step."""
    while block := stored.read(_BLOCK_BYTES):
        size = _FIRST_BYTES if stored.offset <= _BLOCK_BYTES else _STEP_BYTES
        is_last = stored.offset == stored.size
        end = max(0, len(block) - _CHECKSUM_BYTES) if is_last else len(block)
        for at in range(0, end, size):
            yield block[at : min(at + size, end)]
        if is_last:
            yield block[end:]
