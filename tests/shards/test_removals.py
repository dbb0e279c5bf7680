from pathlib import Path

from shards.reader import Dataset
from tests.shards.datasets import remove


def test_shards_know_what_was_removed(dataset: Path) -> None:
    remove(dataset, [("wudao", "train", 2, 2), ("wudao", "train", 2, 0), ("pile", "train", 0, 1)])
    remove(dataset, [("wudao", "train", 2, 0), ("wudao", "validation", 0, 0)], number=3)
    opened = Dataset.open(dataset)
    removed = [shard.removed.tolist() for shard in opened.documents().shards()]
    assert removed == [[1], [], [], [0, 2], []]
    assert next(opened.documents(split="validation").shards()).removed.tolist() == [0]
    before = Dataset.open(f"{dataset}@2").documents(split="validation")
    assert next(before.shards()).removed.tolist() == []
