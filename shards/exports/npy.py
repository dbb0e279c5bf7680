"""NumPy: files that `numpy.load(path, mmap_mode="r")` opens, for a loader of one's own.

    train/000000_wudao.npy         uint16 or int32 [tokens]: the tokens of a shard
    train_ends/000000_wudao.npy    int64[documents]: where each document ends
    train_loss/000000_wudao.npy    bool[tokens]: whether it carries loss, for every file of a split
                                   in which some carry none

The header is that of numpy.lib.format, version 1.0.
"""

import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from shards.exports.file import ExportFile, Settings, named_pieces
from shards.exports.stream import Piece, SplitStream
from shards.storage.files import Bytes

_HEADER_BYTES = 128


def files(stream: SplitStream, split: str, _: Settings) -> Iterator[ExportFile]:
    """Yield the files of a split."""
    dtype = stream.tokenizer.token_dtype
    for name, piece in named_pieces(stream):
        yield _file(
            f"{split}/{name}.npy",
            (dtype, piece.tokens),
            partial(stream.blocks, piece.start, piece.stop),
        )
        yield _file(
            f"{split}_ends/{name}.npy",
            (np.dtype("<i8"), piece.documents),
            partial(_ends, stream, piece),
        )
        if stream.prompts:
            yield _file(
                f"{split}_loss/{name}.npy",
                (np.dtype("?"), piece.tokens),
                partial(stream.loss, piece),
            )


def _file(
    path: str, array: tuple[np.dtype, int], blocks: Callable[[], Iterable[Bytes]]
) -> ExportFile:
    """Return the file of an array of a type and a length."""
    dtype, length = array
    return ExportFile(
        path=path,
        bytes=_HEADER_BYTES + dtype.itemsize * length,
        content=lambda: itertools.chain([_header(dtype, length)], blocks()),
    )


def _ends(stream: SplitStream, piece: Piece) -> Iterator[Bytes]:
    yield np.cumsum(stream.lengths(piece)).astype("<i8")


def _header(dtype: np.dtype, length: int) -> bytes:
    sink = io.BytesIO()
    described = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": (length,),
    }
    np.lib.format.write_array_header_1_0(sink, described)
    return sink.getvalue()
