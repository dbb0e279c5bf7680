"""Writes a small dataset from which a tiny GLM can learn: words follow each other by a rule."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

from shards.manifest import Manifest, ShardEntry, SourceEntry, read_manifest, write_manifest
from shards.sampling.permutation import derive
from tests.shards.datasets import manifest_of, put_shard

SPECIAL = {
    "eos": 0,
    "pad": 0,
    "cls": 1,
    "mask": 2,
    "smask": 3,
    "gmask": 4,
    "sop": 5,
    "eop": 6,
    "dblock": 7,
}
SIZE = 128
SHAPE = {
    "num_layers": 2,
    "hidden_size": 32,
    "num_heads": 2,
    "vocab_size": SIZE,
    "max_positions": 64,
}
"""The configuration of a model for the dataset, as JSON."""
_FIRST = 8
_STOP = 8
"""The only token that ends a sentence."""


def build(
    directory: Path, *, sources: Sequence[str] = ("web", "notes"), seed: int = 0, size: int = SIZE
) -> Manifest:
    """Write the dataset: for each source, 4 shards of 8 documents, and one validation shard."""
    name = f"g0001-{seed:02}"
    entries = _put_sources(directory / name, sources, shards=4, first=seed << 20)
    names = [name.encode() for name in ("eos", "cls", "mask", "smask", "gmask", "sop", "eop", "dB")]
    pieces = [*names, b".", *(b"x" for _ in range(_FIRST + 1, size))]
    manifest = manifest_of(
        directory,
        entries,
        corpus="rule",
        pieces=pieces,
        special=SPECIAL,
        name=name,
        fingerprint=f"{seed:08x}",
    )
    write_manifest(directory, manifest)
    return manifest


def grow(
    directory: Path,
    *,
    sources: Sequence[str] = ("web",),
    shards: int = 4,
    number: int | None = None,
) -> None:
    """Add a generation to the dataset, unless the manifest already has this number."""
    manifest = read_manifest(directory)
    if number is not None and manifest.number >= number:
        return
    number = manifest.number + 1
    name = f"g{number:04}-00"
    entries = _put_sources(directory / name, sources, shards=shards, first=number << 32)
    added = replace(
        manifest.generations[-1],
        number=number,
        name=name,
        fingerprint=f"{number:08x}",
        sources=entries,
    )
    generations = (*manifest.generations, added)
    write_manifest(directory, replace(manifest, number=number, generations=generations))


def _put_sources(
    folder: Path, sources: Sequence[str], *, shards: int, first: int
) -> dict[str, SourceEntry]:
    """Write the shards of a generation, each with 8 documents, and return their entries."""
    numbers = count(first)

    def put(path: str) -> ShardEntry:
        documents = [_document(next(numbers)) for _ in range(8)]
        return put_shard(folder.parent, f"{folder.name}/{path}", documents)

    return {
        source: SourceEntry(
            shards=tuple(put(f"{source}/{i:05d}") for i in range(shards)),
            validation=(put(f"{source}/validation-00000"),),
        )
        for source in sources
    }


def _document(number: int) -> "np.ndarray[tuple[int], np.dtype[np.uint16]]":
    """Return words, each of which follows the previous one by the same step per document."""
    words = derive(np.array([number], np.uint64), np.arange(3))
    length, step, first = 20 + int(words[0]) % 60, 1 + int(words[1]) % 3, int(words[2]) % SIZE
    text = _FIRST + 1 + (first + step * np.arange(length)) % (SIZE - _FIRST - 1)
    text[6::7] = _STOP
    text[-1] = SPECIAL["eos"]
    return text.astype("<u2")
