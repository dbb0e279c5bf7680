"""A dataset in which all tokens but eos are distinct, and what has to leave it.

Two generations, two sources, prompts, an empty shard, validation, and documents that were removed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from shards.__main__ import main
from shards.manifest import write_manifest
from shards.reader import Dataset
from tests.shards.datasets import put_dataset, take_down

EOS = 3
SIZE = 30_000
LENGTHS = {
    "g0001-00aa/news/00000": (12, 1, 300, 7),
    "g0001-00aa/news/00001": (),
    "g0001-00aa/news/00002": (4, 4),
    "g0001-00aa/news/00003": (1000, 700, 2, 9),
    "g0001-00aa/news/validation-00000": (30, 2, 8),
    "g0001-00aa/web/00000": (33,),
    "g0001-00aa/web/00001": (6, 5, 2),
    "g0001-00aa/web/validation-00000": (9, 9),
    "g0002-00bb/news/00000": (20, 20, 20),
}
"""Tokens of each document of each shard, eos included."""
REMOVED = ("news/00000:2", "news/00003:0", "news/00003:3", "web/00000:0", "web/validation-00000:1")
"""Rows of the first generation: one shard loses all it has."""


@dataclass(frozen=True)
class Document:
    """A document that leaves."""

    tokens: Sequence[int]
    prompt: int


def build(directory: Path, *, dtype: str = "<u2", prompts: bool, removed: bool) -> Path:
    """Write a dataset; the document of row n has n tokens of prompt."""
    numbers = count(EOS + 1)
    shards = {
        path: {
            "documents": [[*(next(numbers) for _ in range(n - 1)), EOS] for n in lengths],
            "prompts": [min(row, n - 1) * prompts for row, n in enumerate(lengths)],
            "dtype": dtype,
        }
        for path, lengths in LENGTHS.items()
    }
    manifest = put_dataset(directory, shards, pieces=[b"x"] * SIZE, special={"eos": EOS})
    name = "uint16" if dtype == "<u2" else "int32"
    tokenizer = replace(manifest.tokenizer, name="words", dtype=name)
    write_manifest(directory, replace(manifest, tokenizer=tokenizer))
    if removed:
        take_down(directory, *(f"g0001-00aa/{name}" for name in REMOVED))
    return directory


def leaving(directory: Path, split: str) -> Iterator[tuple[str, list[Document]]]:
    """Yield the source of each shard that has documents to export, and these."""
    dataset = Dataset.open(directory)
    for entry in dataset.manifest.shards(split=split):
        shard = dataset.shard(entry)
        documents = [
            Document(shard[row].tolist(), int(shard.prompts[row]))
            for row in range(len(shard))
            if row not in shard.removed
        ]
        if documents:
            yield entry.path.split("/")[1], documents


def export(directory: Path, to: str, output: Path, *flags: str) -> int:
    """Run the command, and return its exit code."""
    return main(["export", str(directory), "--to", to, "--output", str(output), *flags])
