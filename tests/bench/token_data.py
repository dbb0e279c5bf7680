"""Datasets of made-up tokens under build/bench, made once."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shards.format import ARROW, BIN, IDX, shard_file
from shards.manifest import ShardEntry, SourceEntry, write_manifest
from shards.storage.files import FileEntry
from shards.writer import write_shard
from tests.bench.inputs import FOLDER
from tests.shards.datasets import manifest_of

EOS = 0
VOCABULARY = 50_304
MEAN_TOKENS = 738
"""Tokens of a document, as in the C4 text that published figures of loaders are of."""
SHARD_TOKENS = 100_000_000
DTYPE = np.dtype("<u2")

_SENTENCE_END = 13
_GENERATION = "g0001-00000000"
_SIGMA = 1.0
"""Of the log-normal lengths of documents."""


def one_shard(num_tokens: int) -> Path:
    """Return a dataset of one shard with so many random tokens."""
    return _made(f"tokens-{num_tokens // 1_000_000}M", lambda to: [_write(to, 0, num_tokens)])


def sparse(num_tokens: int) -> Path:
    """Return a dataset of this size whose tokens take no place on the disk.

    Shards have 100 million tokens, all of them the same files under many names: tokens of a file
    with holes, documents of a real table.
    """
    return _made(
        f"sparse-{num_tokens // 1_000_000_000}B", lambda to: _link(to, num_tokens // SHARD_TOKENS)
    )


def stem(dataset: Path, shard: int = 0) -> Path:
    """Return where a shard of one of these datasets lies."""
    return dataset / _GENERATION / "text" / f"{shard:05d}"


def _made(name: str, write: Callable[[Path], Sequence[ShardEntry]]) -> Path:
    folder = FOLDER / name
    if not folder.exists():
        unfinished = folder.with_name(f"{name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        _commit(unfinished, write(unfinished))
        unfinished.rename(folder)
    return folder


def _lengths(num_tokens: int) -> NDArray[np.int32]:
    """Return lengths of documents that add up to a number."""
    mean = np.log(MEAN_TOKENS) - _SIGMA**2 / 2
    size = 2 * num_tokens // MEAN_TOKENS
    lengths = 2 + np.random.default_rng(0).lognormal(mean, _SIGMA, size).astype(np.int64)
    ends = np.cumsum(lengths)
    ends = np.append(ends[ends < num_tokens - 1], num_tokens)
    return np.diff(ends, prepend=0).astype(np.int32)


def _documents(lengths: NDArray[np.int32]) -> pa.Table:
    count = len(lengths)
    return pa.table(
        {
            "tokens": lengths,
            "prompt_tokens": np.zeros(count, np.int32),
            "order": np.arange(count, dtype=np.uint64),
        }
    )


def _write(folder: Path, number: int, num_tokens: int) -> ShardEntry:
    lengths = _lengths(num_tokens)
    tokens = np.random.default_rng(1).integers(1, VOCABULARY, num_tokens, DTYPE)
    tokens[np.cumsum(lengths) - 1] = EOS
    return write_shard(
        stem(folder, number), _documents(lengths), directory=folder, tokens=[tokens], dtype=DTYPE
    )


def _link(folder: Path, num_shards: int) -> list[ShardEntry]:
    """Write one shard, empty its tokens, and give it more names."""
    first = _write(folder, 0, SHARD_TOKENS)
    holes = shard_file(stem(folder), BIN)
    os.truncate(holes, 0)
    os.truncate(holes, SHARD_TOKENS * DTYPE.itemsize)
    entries = []
    for number in range(num_shards):
        path = stem(folder, number)
        for suffix in (BIN, IDX, ARROW) if number else ():
            shard_file(path, suffix).hardlink_to(shard_file(stem(folder), suffix))
        entries.append(
            ShardEntry(
                path=path.relative_to(folder).as_posix(),
                documents=first.documents,
                tokens=first.tokens,
                files={name: _size(entry) for name, entry in first.files.items()},
            )
        )
    return entries


def _size(entry: FileEntry) -> FileEntry:
    return FileEntry(bytes=entry.bytes, crc32c=0)  # of emptied tokens nobody checks it


def _commit(folder: Path, shards: Sequence[ShardEntry]) -> None:
    manifest = manifest_of(
        folder,
        {"text": SourceEntry(shards=tuple(shards), validation=())},
        corpus="bench",
        pieces=[b"." if i == _SENTENCE_END else b"x" for i in range(VOCABULARY)],
        special={"eos": EOS},
        name=_GENERATION,
        fingerprint="0" * 64,
    )
    write_manifest(folder, manifest)
