"""mosaicml-streaming: MDS shards, a folder for each split, as its StreamingDataset reads them.

    index.json          the shards: samples, sizes, columns
    shard.00000.mds     | samples n | offsets, uint32[n+1] | columns as JSON | sample 0 | …

There is one column, `tokens`. A sample is a document, whose array says how long it is, or, with a
sequence length, that many consecutive tokens of the split:

    ndarray:uint16         | bytes of the rest, uint32 | 1 << 2 | log2 of s | tokens, of s bytes | …
    ndarray:uint16:2048    | 2048 tokens |

The layout is that of mosaicml/streaming, streaming/base/format/mds and base/format/base/writer.py.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shards.errors import UserError
from shards.exports.file import ExportFile, Settings
from shards.exports.kept import Kept, Piece, batches
from shards.storage.files import Bytes

FILE_BYTES = 1 << 26
"""Of tokens in a file, about: the writer's own limit."""

MOST_TOKENS = 200_000_000
"""Offsets in a file are uint32, and a document of one token takes up to 16 bytes with its own."""

COLUMN = "tokens"

_COUNT = np.dtype("<u4")
_DIMENSION = 1 << 2
"""One dimension, in the byte before its length; the rest is log2 of the bytes of that."""


@dataclass(frozen=True, kw_only=True)
class _Shard:
    """A file of samples: rows of a piece, or sequences of the split."""

    first: int
    stop: int
    bytes: int
    """Of all its samples."""
    piece: Piece | None = None

    @property
    def samples(self) -> int:
        return self.stop - self.first


def check(kept: Kept, settings: Settings) -> None:
    """Check that there is a sample, and that a file can hold what it is to hold.

    Raises:
        UserError: It is not so.
    """
    if settings.tokens_per_file > MOST_TOKENS:
        raise UserError(
            f"--tokens-per-file {settings.tokens_per_file:,} is more than the offsets of an MDS "
            f"file reach: give at most {MOST_TOKENS:,}."
        )
    if settings.sequence_length > min(kept.tokens, settings.tokens_per_file):
        raise UserError(
            f"--sequence-length {settings.sequence_length:,} is more than "
            f"{min(kept.tokens, settings.tokens_per_file):,}, the tokens there are to train on or "
            "in a file: no sample would be whole. Give a smaller one."
        )


def files(kept: Kept, split: str, settings: Settings) -> Iterator[ExportFile]:
    """Yield the files of a split, the index last."""
    length = settings.sequence_length
    shards = list(_sequences(kept, settings) if length else _documents(kept, settings))
    config = _config(kept, length)
    listed = []
    for number, shard in enumerate(shards):
        name = f"shard.{number:05d}.mds"
        size = len(_head([], _text(config))) + _COUNT.itemsize * shard.samples + shard.bytes
        listed.append(_listed(shard.samples, name, size, config))
        yield ExportFile(
            path=f"{split}/{name}", bytes=size, content=partial(_content, kept, shard, config)
        )
    index = json.dumps({"version": 2, "shards": listed}, sort_keys=True).encode()
    yield ExportFile(path=f"{split}/index.json", bytes=len(index), content=lambda: [index])


def _sequences(kept: Kept, settings: Settings) -> Iterator[_Shard]:
    samples = kept.tokens // settings.sequence_length
    total = -(-samples // (settings.tokens_per_file // settings.sequence_length))
    size = settings.sequence_length * kept.tokenizer.token_dtype.itemsize
    for index in range(total):
        first, stop = (samples * edge // total for edge in (index, index + 1))
        yield _Shard(first=first, stop=stop, bytes=size * (stop - first))


def _documents(kept: Kept, settings: Settings) -> Iterator[_Shard]:
    for piece in kept.pieces:
        lengths = kept.planned_lengths(piece)
        sizes = _sizes(lengths, kept.tokenizer.token_dtype)
        ends = np.cumsum(lengths)
        first = begin = 0
        while first < len(ends):
            stop = int(np.searchsorted(ends, begin + settings.tokens_per_file, side="right"))
            stop = max(stop, first + 1)  # a document that is longer has a file of its own
            yield _Shard(first=first, stop=stop, bytes=int(sizes[first:stop].sum()), piece=piece)
            first, begin = stop, int(ends[stop - 1])


def _config(kept: Kept, length: int) -> dict[str, Any]:
    dtype = kept.tokenizer.token_dtype
    return {
        "version": 2,
        "format": "mds",
        "compression": None,
        "hashes": [],
        "size_limit": None,
        "column_names": [COLUMN],
        "column_encodings": [f"ndarray:{dtype.name}" + (f":{length}" if length else "")],
        "column_sizes": [length * dtype.itemsize if length else None],
    }


def _content(kept: Kept, shard: _Shard, config: Mapping[str, Any]) -> Iterator[Bytes]:
    text = _text(config)
    (size,) = config["column_sizes"]
    if shard.piece is None:
        yield _head([size] * shard.samples, text)
        length = size // kept.tokenizer.token_dtype.itemsize
        yield from kept.blocks(shard.first * length, shard.stop * length)
        return
    lengths = kept.lengths(shard.piece)
    chosen = lengths[shard.first : shard.stop]
    yield _head(_sizes(chosen, kept.tokenizer.token_dtype), text)
    start = shard.piece.start + int(lengths[: shard.first].sum())
    for rows in batches(chosen):
        stop = start + int(chosen[rows].sum())
        yield _samples(np.concatenate([*kept.blocks(start, stop)]), chosen[rows])
        start = stop


def _text(config: Mapping[str, Any]) -> bytes:
    return json.dumps(config, sort_keys=True).encode()


def _sizes(lengths: NDArray[np.int64], dtype: np.dtype[Any]) -> NDArray[np.int64]:
    """Return how many bytes a document of each length takes as a sample."""
    return _COUNT.itemsize + 1 + _width(lengths) + dtype.itemsize * lengths


def _head(sizes: NDArray[np.int64] | Sequence[int], text: bytes) -> bytes:
    """Return what stands before the samples of a file."""
    start = _COUNT.itemsize * (len(sizes) + 2) + len(text)
    offsets = start + np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    if offsets[-1] > np.iinfo(_COUNT).max:
        raise UserError(
            f"a document makes an MDS file of {offsets[-1]:,} bytes, which its offsets, uint32, do "
            "not reach: give --sequence-length, which cuts documents."
        )
    return np.array([len(sizes), *offsets], _COUNT).tobytes() + text


def _width(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return in how many bytes each length is written."""
    return np.where(lengths < 1 << 8, 1, np.where(lengths < 1 << 16, 2, 4))


def _samples(tokens: np.ndarray, lengths: NDArray[np.int64]) -> bytes:
    """Return documents as samples, one after another."""
    parts = []
    start = 0
    for length, width in zip(lengths.tolist(), _width(lengths).tolist(), strict=True):
        values = tokens[start : start + length].tobytes()
        shape = bytes([_DIMENSION | (width.bit_length() - 1)]) + length.to_bytes(width, "little")
        parts += [(len(shape) + len(values)).to_bytes(_COUNT.itemsize, "little"), shape, values]
        start += length
    return b"".join(parts)


def _listed(samples: int, name: str, size: int, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the index says of a file."""
    raw = {"basename": name, "bytes": size, "hashes": {}}
    return {"samples": samples, "raw_data": raw, "zip_data": None, **config}
