import os
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shards.errors import DamageError, UserError
from shards.manifest import VALIDATION, ShardEntry, read_manifest
from shards.reader import Dataset, Shard

NULLS = pa.array([None, 0], pa.int32())
U2 = np.dtype("<u2")
TEXTS = ["你好。", "天气 fine", "a", "bc", "def.", "[MASK] is text"]


def entry(directory: Path, index: int = 0) -> ShardEntry:
    return read_manifest(directory).shards("wudao")[index]


def test_documents_are_views(pristine: Path) -> None:
    shard = Shard.open(pristine, entry(pristine), dtype=U2)
    assert len(shard) == 2
    assert shard[1].tolist() == [*TEXTS[1].encode(), 256]
    assert shard.offsets.tolist() == [0, 10]
    assert np.shares_memory(shard[0], shard.tokens)
    assert np.shares_memory(shard[1], shard.tokens)
    assert type(shard[1]) is np.ndarray
    assert not shard[1].flags.writeable


def test_a_dataset_says_what_it_is(pristine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "manifest 1: 8 documents, 55 tokens, validation 1, sources pile, wudao)"
    assert repr(Dataset.open(pristine)) == f"Dataset('{pristine}', {said}"
    monkeypatch.chdir(pristine.parent)
    assert repr(Dataset.open(pristine)) == f"Dataset('{pristine.name}', {said}"


def test_columns_are_mapped_and_aligned(pristine: Path) -> None:
    shard = Shard.open(pristine, entry(pristine), dtype=U2)
    column = shard.documents["offset"].chunk(0)
    assert shard.offsets.ctypes.data == column.buffers()[1].address
    assert shard.offsets.ctypes.data % 8 == 0
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if ".arrow" in line]
    ranges = [[int(x, 16) for x in line.split()[0].split("-")] for line in mapped]
    assert any(low <= shard.offsets.ctypes.data < high for low, high in ranges)


def test_no_descriptor_stays_open(pristine: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a Path would need one more itself
    shards = list(Dataset.open(pristine).documents().shards())
    assert len(shards) == 5
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    del shards
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize("row", [-1, 2])
def test_no_such_row(pristine: Path, row: int) -> None:
    shard = Shard.open(pristine, entry(pristine), dtype=U2)
    with pytest.raises(IndexError, match=rf"has 2 documents, no document {row}"):
        shard[row]


@pytest.mark.parametrize("suffix", ["bin", "idx", "arrow"])
def test_files_cut_short_or_missing(dataset: Path, suffix: str) -> None:
    first = entry(dataset)
    path = dataset / f"{first.path}.{suffix}"
    size = path.stat().st_size
    os.truncate(path, size - 2)
    with pytest.raises(DamageError, match=rf"{path} has {size - 2:,} bytes, .* says {size:,}"):
        Shard.open(dataset, first, dtype=U2)
    path.unlink()
    with pytest.raises(DamageError, match=f"{path} is missing"):
        Shard.open(dataset, first, dtype=U2)


def test_damage_inside_the_arrow_file(dataset: Path) -> None:
    first = entry(dataset)
    path = dataset / f"{first.path}.arrow"
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(DamageError, match=rf"{path} is not an Arrow file"):
        Shard.open(dataset, first, dtype=U2)


def change(path: Path, old: np.ndarray, new: np.ndarray) -> None:
    """Put other numbers in the place of some that are in a file once."""
    content = path.read_bytes()
    assert content.count(old.tobytes()) == 1
    path.write_bytes(content.replace(old.tobytes(), new.tobytes()))


@pytest.mark.parametrize("offset", [9, 11, -1, 2**40])
def test_an_offset_that_contradicts_the_lengths(dataset: Path, offset: int) -> None:
    first = entry(dataset)
    path = dataset / f"{first.path}.arrow"
    change(path, np.array([0, 10]), np.array([0, offset]))
    shard = Shard.open(dataset, first, dtype=U2)
    for row in range(2):
        with pytest.raises(
            DamageError, match=rf"{path} is damaged: the 1\d tokens of doc.* {row} "
        ):
            shard[row]


def test_strings_that_lie_outside_the_file(dataset: Path) -> None:
    """They are found by whoever reads them; opening the shard reads none."""
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


def test_lengths_that_do_not_add_up(dataset: Path) -> None:
    first = entry(dataset)
    change(dataset / f"{first.path}.arrow", np.array([10, 12], "<i4"), np.array([10, 13], "<i4"))
    shard = Shard.open(dataset, first, dtype=U2)
    with pytest.raises(DamageError, match="damaged: its documents have 23 tokens, the shard 22\\."):
        shard.check_lengths()


def test_a_pickled_shard_maps_again(pristine: Path) -> None:
    shard = Shard.open(pristine, entry(pristine, 2), dtype=U2)
    content = pickle.dumps(shard)
    assert shard.tokens.tobytes() not in content
    again = pickle.loads(content)
    assert np.array_equal(again.tokens, shard.tokens)
    assert again.documents == shard.documents


def test_numbers_run_through_the_shards(pristine: Path) -> None:
    dataset = Dataset.open(str(pristine))
    documents = dataset.documents("wudao")
    assert dataset.sources == ("pile", "wudao")
    assert len(documents) == 6
    decode = dataset.vocabulary.decode
    expected = [f"{text}⟨<|endoftext|>⟩" for text in TEXTS]
    assert [decode(documents[i]) for i in range(6)] == expected
    assert [decode(tokens) for tokens in documents] == expected
    shard, row = documents.locate(2)
    assert (shard.entry.path[-5:], row) == ("00002", 0)  # the empty one in front is passed over
    assert documents.locate(4)[0] is shard
    for number in (-1, 6):
        with pytest.raises(IndexError, match=f"no document {number}: there are 6"):
            documents.locate(number)


def test_all_sources_and_validation(pristine: Path) -> None:
    dataset = Dataset.open(pristine)
    assert len(dataset.documents()) == 8
    assert dataset.vocabulary.decode(dataset.documents()[0]) == "one⟨<|endoftext|>⟩"
    assert len(dataset.documents(split=VALIDATION)) == 1
    assert len(dataset.documents("pile", split=VALIDATION)) == 0


def test_a_numbered_dataset(pristine: Path) -> None:
    assert Dataset.open(f"{pristine}@1").manifest == read_manifest(pristine)
    with pytest.raises(UserError, match="no manifest number 2"):
        Dataset.open(f"{pristine}@2")


def test_shards_open_when_they_are_needed(dataset: Path) -> None:
    documents = Dataset.open(dataset).documents("wudao")
    (dataset / f"{entry(dataset, 3).path}.bin").unlink()
    assert documents[0].size == 10
    with pytest.raises(DamageError, match=r"00003\.bin is missing"):
        documents[5]


def test_a_pickled_dataset_is_the_same(pristine: Path) -> None:
    dataset = Dataset.open(pristine)
    again = pickle.loads(pickle.dumps(dataset))
    assert again.manifest == dataset.manifest
    assert len(again.documents()) == len(dataset.documents())
