"""A dataset in which every token but eos is another one, so that a test can tell what was read."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa

from shards.manifest import (
    Generation,
    Manifest,
    ShardEntry,
    SourceEntry,
    TokenizerEntry,
    write_manifest,
)
from shards.vocabulary import vocabulary_table, write_vocabulary
from shards.writer import write_shard

EOS, CLS = 0, 1
SIZE = 16_384
WEB = (
    [40, 1, 1, 2, 90, 33],
    [700],  # one document that is longer than other shards are
    [1] * 30,
    [17, 250, 3],
    [5, 5, 5, 120],
    [64, 64],
    [299, 1, 18],
    [8, 90, 2, 7],
)
"""Tokens of each document of each shard, eos among them."""
NOTES = ([25, 30],)
HELD = ([100, 31, 2],)


def build(directory: Path, *, sha256: str = "0" * 64, prompts: int = 0) -> Manifest:
    """Write the dataset; each document begins with so many tokens of prompt, if it has them."""
    numbers = count(2)

    def entries(
        source: str, shards: Sequence[Sequence[int]], prefix: str = ""
    ) -> tuple[ShardEntry, ...]:
        return tuple(
            _put(directory, f"g0001-00/{source}/{prefix}{i:05d}", lengths, numbers, prompts)
            for i, lengths in enumerate(shards)
        )

    sources = {
        "notes": SourceEntry(shards=entries("notes", NOTES), validation=()),
        "web": SourceEntry(
            shards=entries("web", WEB), validation=entries("web", HELD, "validation-")
        ),
    }
    special = {"eos": EOS, "cls": CLS, "pad": EOS}
    pieces = [b"<eos>", b"[CLS]", *(b"." if i % 13 == 0 else b"x" for i in range(2, SIZE))]
    manifest = Manifest(
        number=1,
        lineage="0" * 64,
        corpus="numbered",
        options={},
        tokenizer=TokenizerEntry(
            spec="numbers",
            name=f"numbers-{sha256[:2]}",
            sha256=sha256,
            pieces=SIZE,
            vocabulary_size=SIZE,
            dtype="uint16",
            special=special,
        ),
        vocabulary=write_vocabulary(
            directory, vocabulary_table(pieces, special={EOS, CLS}, size=SIZE)
        ),
        libraries={},
        generations=(
            Generation(
                number=1,
                name="g0001-00",
                fingerprint="00" + sha256[:6],
                inputs=(),
                sources=sources,
                audit=(),
                signatures=(),
                rejects=(),
                accounting={},
            ),
        ),
    )
    write_manifest(directory, manifest)
    return manifest


def _put(
    directory: Path, path: str, lengths: Sequence[int], numbers: "count[int]", prompts: int
) -> ShardEntry:
    tokens = [[*(next(numbers) for _ in range(length - 1)), EOS] for length in lengths]
    documents = pa.table(
        {
            "tokens": pa.array(lengths, pa.int32()),
            "prompt_tokens": pa.array([min(prompts, n - 1) for n in lengths], pa.int32()),
            "order": pa.array(range(len(lengths)), pa.uint64()),
        }
    )
    return write_shard(
        directory / path,
        documents,
        directory=directory,
        tokens=[np.array(document, "<u2") for document in tokens],
        dtype=np.dtype("<u2"),
    )
