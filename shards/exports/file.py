"""A file of an export before it is written: where, how large, and what will be in it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from shards.exports.kept import Kept, Piece
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
    shard: tuple[Kept, Piece] | None = None
    """The shard whose `.bin` has the very same bytes."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is exported, and how."""

    format: str
    sources: tuple[str, ...]
    prefix: str = ""
    """Of file names, where the format has one."""
    tokens_per_file: int = 0
    """At most, where the format has no file for each shard."""
    sequence_length: int = 0
    """Tokens of a sample; 0: a sample is a document."""


def payload(kept: Kept, piece: Piece, path: str) -> ExportFile:
    """Return the file of a piece's tokens and nothing else: that of its shard, if all is kept."""
    return ExportFile(
        path=path,
        bytes=piece.tokens * kept.tokenizer.token_dtype.itemsize,
        content=partial(kept.blocks, piece.start, piece.stop),
        shard=None if len(piece.removed) else (kept, piece),
    )


def named_pieces(kept: Kept) -> Iterable[tuple[str, Piece]]:
    """Yield a name for each piece that has tokens, sorted as the pieces are: 000007_wudao."""
    pieces = (piece for piece in kept.pieces if piece.tokens)
    return ((f"{number:06d}_{piece.source}", piece) for number, piece in enumerate(pieces))
