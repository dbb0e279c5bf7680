"""OLMo-core: a folder of `.npy` files for each split, as its NumpyDataset classes read them.

    train/000000_wudao.npy              the tokens of a shard, uint16 or uint32, without a header
    train/000000_wudao.csv.gz           a line for each document: its first token, the one behind it
    train_label_mask/000000_wudao.npy   bool[tokens]: whether it carries loss, for every file of a
                                        split in which some carry none

The layout is that of allenai/OLMo-core, olmo_core/data/numpy_dataset.py and utils.py.
"""

import zlib
from collections.abc import Iterator
from functools import partial

import numpy as np

from shards.exports.file import ExportFile, Settings, named_pieces, payload
from shards.exports.stream import Piece, SplitStream
from shards.storage.files import Bytes

_GZIP = 31
"""zlib's window for a gzip file, whose header then has no name and no time."""

_LINES_AT_ONCE = 4096
_LINE_BYTES = 5
"""About, compressed."""


def files(stream: SplitStream, split: str, _: Settings) -> Iterator[ExportFile]:
    """Yield the files of a split."""
    for name, piece in named_pieces(stream):
        yield payload(stream, piece, f"{split}/{name}.npy")
        yield ExportFile(
            path=f"{split}/{name}.csv.gz",
            bytes=_LINE_BYTES * piece.documents,
            content=partial(_table, stream, piece),
        )
        if stream.prompts:
            yield ExportFile(
                path=f"{split}_label_mask/{name}.npy",
                bytes=piece.tokens,
                content=partial(stream.loss, piece),
            )


def _table(stream: SplitStream, piece: Piece) -> Iterator[Bytes]:
    packer = zlib.compressobj(wbits=_GZIP)
    edges = np.concatenate([[0], np.cumsum(stream.lengths(piece))]).tolist()
    for first in range(0, len(edges) - 1, _LINES_AT_ONCE):
        rows = zip(edges[first : first + _LINES_AT_ONCE], edges[first + 1 :], strict=False)
        text = "".join(f"{start},{stop}\n" for start, stop in rows)
        yield packer.compress(text.encode())
    yield packer.flush()
