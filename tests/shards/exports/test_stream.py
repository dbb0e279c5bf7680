import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from shards.exports.stream import SplitStream
from shards.manifest import TRAIN, VALIDATION, SourceEntry, write_manifest
from shards.reader import Dataset
from shards.removals import removed_by_now
from tests.shards.datasets import manifest_of, put_shard, remove
from tests.shards.exports.worlds import EOS, World, export


def stream_of(world: World, split: str = TRAIN) -> SplitStream:
    dataset = Dataset.open(world.directory)
    removed = removed_by_now(dataset.directory, dataset.manifest)[1]
    return SplitStream(dataset, split, sources=dataset.sources, removed=removed)


@pytest.mark.parametrize("split", [TRAIN, VALIDATION])
def test_any_range_of_a_split_is_what_it_says(world: World, split: str) -> None:
    stream = world.stream(split)
    taken = stream_of(world, split)
    assert (taken.tokens, taken.documents) == (len(stream), len(world.documents[split]))
    assert taken.removed == {TRAIN: 4, VALIDATION: 1}[split]
    assert taken.prompts == sum(document.prompt > 0 for document in world.documents[split])
    chance = random.Random(0)
    edges = [sorted(chance.choices(range(len(stream) + 1), k=2)) for _ in range(200)]
    for start, stop in [(0, len(stream)), (5, 5), (len(stream), len(stream)), *edges]:
        blocks = [token for block in taken.blocks(start, stop) for token in block.tolist()]
        assert blocks == stream[start:stop]


@pytest.mark.parametrize("to", ["llm.c", "numpy"])
def test_memory_does_not_grow_with_a_shard(tmp_path: Path, to: str) -> None:
    directory = tmp_path / "dataset"
    length, documents = 20_000, 800
    tokens = np.full(length, 5, "<u2")
    tokens[-1] = EOS
    prompts = [row % 2 for row in range(documents)]
    entry = put_shard(directory, "g0001-00/a/00000", [tokens] * documents, prompts=prompts)
    manifest = manifest_of(
        directory,
        {"a": SourceEntry(shards=(entry,), validation=())},
        corpus="large",
        pieces=[b"x"] * 10,
        special={"eos": EOS},
        name="g0001-00",
        fingerprint="00",
    )
    write_manifest(directory, manifest)
    remove(directory, [("a", TRAIN, 0, row) for row in range(0, documents, 10)])
    tracemalloc.start()
    try:
        assert export(directory, to, tmp_path / "out") == 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert size > 2 * length * documents * 0.9
    assert peak < 24 << 20
