"""Writes, once, a dataset of random tokens to build/bench."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from shards.manifest import SourceEntry, write_manifest
from shards.writer import write_shard
from tests.bench.inputs import cached_folder
from tests.shards.datasets import manifest_of

EOS = 0
VOCABULARY = 50_304
MEAN_TOKENS = 738
"""The mean number of tokens of a document, as in C4, which published benchmarks of loaders use."""
DTYPE = np.dtype("<u2")

_GENERATION = "g0001-00000000"


def one_shard(num_tokens: int) -> Path:
    """Return the folder of a dataset that has one shard of `num_tokens` random tokens."""
    return cached_folder(
        f"tokens-{num_tokens // 1_000_000}M", lambda folder: _write(folder, num_tokens)
    )


def stem(dataset: Path) -> Path:
    """Return the path of the dataset's shard, without the ending."""
    return dataset / _GENERATION / "text" / "00000"


def _write(folder: Path, num_tokens: int) -> None:
    # Log-normal lengths, whose sigma is 1.
    drawn = np.random.default_rng(0).lognormal(
        np.log(MEAN_TOKENS) - 0.5, 1.0, 2 * num_tokens // MEAN_TOKENS
    )
    ends = np.cumsum(2 + drawn.astype(np.int64))
    ends = np.append(ends[ends < num_tokens - 1], num_tokens)
    tokens = np.random.default_rng(1).integers(1, VOCABULARY, num_tokens, DTYPE)
    tokens[ends - 1] = EOS
    columns = {
        "tokens": np.diff(ends, prepend=0).astype(np.int32),
        "prompt_tokens": np.zeros(len(ends), np.int32),
        "order": np.arange(len(ends), dtype=np.uint64),
    }
    shard = write_shard(
        stem(folder), pa.table(columns), directory=folder, tokens=[tokens], dtype=DTYPE
    )
    manifest = manifest_of(
        folder,
        {"text": SourceEntry(shards=(shard,), validation=())},
        corpus="bench",
        pieces=[b"x"] * VOCABULARY,
        special={"eos": EOS},
        name=_GENERATION,
        fingerprint="0" * 64,
    )
    write_manifest(folder, manifest)
