import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from shards.__main__ import main
from shards.errors import DamageError
from shards.manifest import ShardEntry, read_manifest
from shards.reader import Dataset, Shard

U2 = np.dtype("<u2")
TEXTS = ["你好。", "天气 fine", "a", "bc", "def.", "[MASK] is text"]


def entry(directory: Path, index: int = 0) -> ShardEntry:
    return read_manifest(directory).shards("wudao")[index]


def test_columns_are_mapped_and_aligned(pristine: Path) -> None:
    shard = Shard.open(pristine, entry(pristine), dtype=U2)
    assert np.shares_memory(shard[1], shard.tokens)
    assert not shard[1].flags.writeable
    column = shard.documents["offset"].chunk(0)
    assert shard.offsets.ctypes.data == column.buffers()[1].address
    assert shard.offsets.ctypes.data % 8 == 0
    for array, suffix in ((shard.offsets, ".arrow"), (shard.tokens, ".bin")):
        maps = Path("/proc/self/maps").read_text().splitlines()
        ranges = [line.split()[0].split("-") for line in maps if line.endswith(suffix)]
        at = array.ctypes.data
        assert any(int(low, 16) <= at < int(high, 16) for low, high in ranges)


def test_documents_are_a_sequence(dataset: Path) -> None:
    opened = Dataset.open(dataset)
    assert main(["remove", str(dataset), "--id", f"{entry(dataset).path}:1", "--reason", "x"]) == 0
    for each in (opened, Dataset.open(dataset)):
        documents = each.documents()
        texts = [document.tobytes() for document in documents]
        numbers = range(-len(texts), len(texts))
        assert [documents[number].tobytes() for number in numbers] == texts * 2
        assert documents[np.int64(-1)].tobytes() == texts[-1]
        for part in (slice(None), slice(1, -1), slice(-2, None), slice(None, None, -2), slice(9)):
            assert [document.tobytes() for document in documents[part]] == texts[part]
        for number in (len(texts), -len(texts) - 1):
            with pytest.raises(IndexError, match=f"no document {number}: there are {len(texts)}"):
                documents[number]


def test_no_descriptor_stays_open(pristine: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a Path would need one more itself
    shards = list(Dataset.open(pristine).documents().shards())
    assert len(shards) == 5
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    del shards
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def change(path: Path, old: np.ndarray, new: np.ndarray) -> None:
    """Replace a sequence of numbers, which must occur exactly once in a file."""
    content = path.read_bytes()
    assert content.count(old.tobytes()) == 1
    path.write_bytes(content.replace(old.tobytes(), new.tobytes()))


def test_strings_that_lie_outside_the_file(dataset: Path) -> None:
    """Reading the strings finds the error; opening the shard does not read any."""
    first = entry(dataset)
    path = dataset / f"{first.path}.arrow"
    change(path, np.array([0, 11, 22]), np.array([0, 1 << 40, 22]))
    opened = Dataset.open(dataset)
    shard = opened.shard(first)
    assert shard.value("bytes", 1) == len(TEXTS[1].encode())
    for read in (
        lambda: shard.value("path", 1),
        lambda: shard.column("path"),
        lambda: opened.table(first),
    ):
        with pytest.raises(DamageError, match=rf"{path} is not an Arrow file, or is damaged \("):
            read()


def test_a_pickled_shard_maps_again(pristine: Path) -> None:
    shard = Shard.open(pristine, entry(pristine, 2), dtype=U2)
    content = pickle.dumps(shard)
    assert shard.tokens.tobytes() not in content
    again = pickle.loads(content)
    assert np.array_equal(again.tokens, shard.tokens)
    assert again.documents == shard.documents
