"""A file of an export before it is written: where, how large, and what will be in it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from shards.exports.stream import Piece, SplitStream
from shards.storage.files import Bytes

Content = Callable[[], Iterable[Bytes]]
"""Makes the bytes of a file, in blocks."""


@dataclass(frozen=True, kw_only=True)
class ExportFile:
    """A file of an export."""

    path: str
    """Relative to the export, with forward slashes."""
    bytes: int
    """Its size, or about that if it depends on what is compressed; 0 if it is small."""
    content: Content
    piece: Piece | None = None
    """The piece whose shard's `.bin` has the very same bytes."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is exported, and how."""

    format: str
    sources: tuple[str, ...]
    prefix: str = ""
    """Of file names, where the format has one."""
    tokens_per_file: int = 0
    """At most, where the format has no file for each shard."""
    copy: bool = False
    """Whether every file has bytes of its own."""


def payload(stream: SplitStream, piece: Piece, path: str) -> ExportFile:
    """Return the file of a piece's tokens and nothing else: that of its shard, if all is kept."""
    return ExportFile(
        path=path,
        bytes=piece.tokens * stream.tokenizer.token_dtype.itemsize,
        content=partial(stream.blocks, piece.start, piece.stop),
        piece=None if len(piece.removed) else piece,
    )


def named_pieces(stream: SplitStream) -> Iterable[tuple[str, Piece]]:
    """Yield a name for each piece that has tokens, sorted as the pieces are: 000007_wudao."""
    pieces = (piece for piece in stream.pieces if piece.tokens)
    return ((f"{number:06d}_{piece.source}", piece) for number, piece in enumerate(pieces))
