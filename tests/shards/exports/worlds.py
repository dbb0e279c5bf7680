"""A dataset in which all tokens but eos are distinct, and what has to leave it, worked out plainly.

Two generations, two sources, prompts, an empty shard, validation, and documents that were removed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from shards.__main__ import main
from shards.manifest import TRAIN, VALIDATION, write_manifest
from tests.shards.datasets import put_dataset, remove

EOS = 3
SIZE = 30_000

SHARDS: Mapping[tuple[str, str], Sequence[Sequence[int]]] = {
    ("g0001-00aa", "news"): ([12, 1, 300, 7], [], [4, 4], [1000, 70_000 // 100, 2, 9]),
    ("g0001-00aa", "web"): ([33], [6, 5, 2]),
    ("g0002-00bb", "news"): ([20, 20, 20],),
}
"""Tokens of each document of each shard, eos included, by generation and source."""

HELD = {("g0001-00aa", "news"): ([30, 2, 8],), ("g0001-00aa", "web"): ([9, 9],)}

REMOVED = [
    ("news", TRAIN, 0, 2),
    ("news", TRAIN, 3, 0),
    ("news", TRAIN, 3, 3),
    ("web", TRAIN, 0, 0),
    ("web", VALIDATION, 0, 1),
]
"""Source, split, shard and row in the first generation: one shard loses all it has."""


@dataclass(frozen=True)
class Document:
    """A document that leaves."""

    generation: str
    source: str
    shard: int
    tokens: tuple[int, ...]
    prompt: int


@dataclass(frozen=True)
class World:
    directory: Path
    documents: Mapping[str, Sequence[Document]]
    """By split, in order."""

    def stream(self, split: str = TRAIN, *sources: str) -> list[int]:
        """All tokens of a split in order."""
        return [
            token
            for document in self.documents[split]
            if not sources or document.source in sources
            for token in document.tokens
        ]

    def shards(self, split: str = TRAIN) -> list[list[Document]]:
        """The documents of each shard that has any."""
        groups: dict[tuple[str, str, int], list[Document]] = {}
        for document in self.documents[split]:
            key = document.generation, document.source, document.shard
            groups.setdefault(key, []).append(document)
        return list(groups.values())


def build(
    directory: Path, *, dtype: str = "<u2", prompts: bool = True, removed: bool = True
) -> World:
    """Write a dataset, and return what has to leave it."""
    numbers = count(EOS + 1)
    documents: dict[str, list[Document]] = {TRAIN: [], VALIDATION: []}
    gone = set(REMOVED) if removed else set()

    shards = {}
    for split, generation, source, index, lengths in (
        (split, *key, index, lengths)
        for split, of in ((TRAIN, SHARDS), (VALIDATION, HELD))
        for key, entries in of.items()
        for index, lengths in enumerate(entries)
    ):
        made = []
        for row, length in enumerate(lengths):
            tokens = (*(next(numbers) for _ in range(length - 1)), EOS)
            prompt = min(row, length - 1) if prompts else 0
            made.append(Document(generation, source, index, tokens, prompt))
            if generation != "g0001-00aa" or (source, split, index, row) not in gone:
                documents[split].append(made[-1])
        prefix = "validation-" if split == VALIDATION else ""
        shards[f"{generation}/{source}/{prefix}{index:05d}"] = {
            "documents": [document.tokens for document in made],
            "prompts": [document.prompt for document in made],
            "dtype": dtype,
        }
    manifest = put_dataset(
        directory, shards, corpus="world", pieces=[b"x"] * SIZE, special={"eos": EOS}
    )
    tokenizer = replace(
        manifest.tokenizer, name="words", dtype="uint16" if dtype == "<u2" else "int32"
    )
    write_manifest(directory, replace(manifest, tokenizer=tokenizer))
    if removed:
        remove(directory, REMOVED, number=3)
    return World(directory, documents)


def export(world: World | str | Path, to: str, output: Path, *flags: str) -> int:
    """Run the command, and return its exit code."""
    dataset = world.directory if isinstance(world, World) else world
    return main(["export", str(dataset), "--to", to, "--output", str(output), *flags])
