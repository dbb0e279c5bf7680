import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from shards.errors import DamageError
from shards.exports.stream import SplitStream, split_stream
from shards.manifest import TRAIN, VALIDATION, SourceEntry, read_manifest, write_manifest
from shards.reader import Dataset
from shards.removals import removed_by_now
from tests.shards.datasets import manifest_of, put_shard, remove
from tests.shards.exports.worlds import EOS, World, build, export


def stream_of(world: World, split: str = TRAIN) -> SplitStream:
    dataset = Dataset.open(world.directory)
    removed = removed_by_now(dataset.directory, dataset.manifest)[1]
    return split_stream(dataset, split, sources=dataset.sources, removed=removed)


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


def test_the_sources_that_are_there(world: World) -> None:
    dataset = Dataset.open(world.directory)
    taken = split_stream(dataset, TRAIN, sources=["web"], removed={})
    assert taken.sources == ("web",)
    assert taken.documents == 4  # nothing was said to be removed


def test_a_document_without_its_end_is_damage(tmp_path: Path) -> None:
    world = build(tmp_path / "dataset", removed=False)
    manifest = read_manifest(world.directory)
    broken = put_shard(world.directory, "g0001-00aa/web/00000", [[9, 8, EOS], [7, 6]])
    first, second = manifest.generations
    web = SourceEntry(shards=(broken,), validation=())
    object.__setattr__(first, "sources", {**first.sources, "web": web})
    write_manifest(world.directory, manifest)
    with pytest.raises(DamageError, match=r"web/00000\.bin is damaged: a document does not end in"):
        list(stream_of(world).blocks(0, 10_000))
    assert second.number == 2


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
