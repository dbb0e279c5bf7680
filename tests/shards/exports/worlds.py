"""The library as a dataset to export, and the documents that the export must contain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shards.__main__ import main
from shards.reader import Dataset
from tests.shards import library
from tests.shards.datasets import take_down
from tests.shards.library import FIRST

REMOVED = (
    *(f"books/00000:{row}" for row in range(12)),
    *("news/00000:2", "news/00003:0", "news/00003:11", "news/validation-00000:1"),
)
"""Rows of the first generation that are removed: all rows of one shard, and a few rows of further
shards."""


@dataclass(frozen=True)
class Document:
    """A document that the export must contain."""

    tokens: Sequence[int]
    prompt: int


def build(directory: Path, *, dtype: str = "<u2", prompts: bool, removed: bool) -> Path:
    """Write the dataset, and return its path."""
    library.build(directory, dtype=dtype, prompts=prompts)
    if removed:
        take_down(directory, *(f"{FIRST}/{row}" for row in REMOVED))
    return directory


def leaving(directory: Path, split: str) -> Iterator[tuple[str, list[Document]]]:
    """Yield, for each shard that has documents to export, its source and these documents."""
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
    """Run the export command, and return the exit code."""
    return main(["export", str(directory), "--to", to, "--output", str(output), *flags])
