"""datatrove: `.ds` files, a folder for each split, as DatatroveFolderDataset and Nanotron read it.

    000000_wudao.ds            the tokens of a shard, uint16 or uint32, nothing else
    000000_wudao.ds.index      uint64[documents]: where each ends, in tokens
    000000_wudao.ds.metadata   tokenizer|bytes of a token, tokens, tokens again as people say them
    000000_wudao.ds.loss       bool[tokens]: whether it carries loss; only if some carry none

The layout is that of datatrove/pipeline/tokens/tokenizer.py, class TokenizedFile.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from shards.exports.file import ExportFile, Settings, named_pieces, payload
from shards.exports.stream import Piece, SplitStream
from shards.storage.files import Bytes


def files(stream: SplitStream, split: str, _: Settings) -> Iterator[ExportFile]:
    """Yield the files of a split."""
    for name, piece in named_pieces(stream):
        yield from _of_piece(stream, piece, f"{split}/{name}.ds")


def _of_piece(stream: SplitStream, piece: Piece, path: str) -> Iterator[ExportFile]:
    yield payload(stream, piece, path)
    yield ExportFile(
        path=f"{path}.index", bytes=8 * piece.documents, content=partial(_index, stream, piece)
    )
    yield ExportFile(path=f"{path}.metadata", bytes=0, content=partial(_metadata, stream, piece))
    if piece.prompts:
        yield ExportFile(
            path=f"{path}.loss", bytes=piece.tokens, content=partial(stream.loss, piece)
        )


def _index(stream: SplitStream, piece: Piece) -> Iterator[Bytes]:
    yield np.cumsum(stream.lengths(piece)).astype("<u8")


def _metadata(stream: SplitStream, piece: Piece) -> Iterator[Bytes]:
    tokenizer = stream.tokenizer
    size = tokenizer.token_dtype.itemsize
    yield f"{tokenizer.name}|{size}\n{piece.tokens}\n{_humanized(piece.tokens)}".encode()


def _humanized(count: int) -> str:
    """Return a count of tokens as `humanize.metric` does, three digits and a prefix: 12.3 kT."""
    exponent = min(len(str(count)) - 1, 29)
    power = exponent // 3
    if power and round(count / 1000**power, 2 - exponent % 3) >= 10 ** (exponent % 3 + 1):
        exponent += 1
        power = exponent // 3
    digits = 2 - exponent % 3
    return f"{count / 1000**power:.{digits}f} {['', *'kMGTPEZYR'][power]}T"
