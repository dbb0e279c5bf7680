from pathlib import Path

import pytest

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


def test_removed_documents_are_left_out_of_the_sequence(dataset: Path) -> None:
    before = [document.tolist() for document in Dataset.open(dataset).documents()]
    gone = [("pile", "train", 0, 1), ("wudao", "train", 0, 0), ("wudao", "train", 2, 1)]
    remove(dataset, gone)
    opened = Dataset.open(dataset).documents()
    left = [before[number] for number in (0, 3, 4, 6, 7)]
    assert [document.tolist() for document in opened] == left
    assert [opened[number].tolist() for number in range(len(opened))] == left
    shard, row = opened.locate(3)
    assert (shard.entry.path[-5:], row) == ("00002", 2)
    with pytest.raises(IndexError, match="there is no document 5: there are 5"):
        opened.locate(5)
    assert len(Dataset.open(f"{dataset}@1").documents()) == len(before)
