import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

from shards.format import index_bytes, read_index
from tests.shards.datasets import put_shard

U2, I4 = np.dtype("<u2"), np.dtype("<i4")


GOLDEN = bytes.fromhex(
    "4d4d494449445800 00"  # MMIDIDX
    "0100000000000000 08"  # version 1, uint16
    "0200000000000000 0300000000000000"  # two sequences, three ends
    "03000000 05000000"  # tokens
    "0000000000000000 0600000000000000"  # bytes
    "0000000000000000 0100000000000000 0200000000000000"
)


def test_golden_index(tmp_path: Path) -> None:
    lengths = np.array([3, 5], np.int32)
    assert index_bytes(lengths, U2) == GOLDEN
    wide = bytearray(GOLDEN)
    wide[17], wide[50] = 4, 12
    assert index_bytes(lengths, I4) == wide
    (tmp_path / "x.idx").write_bytes(wide)
    dtype, read_lengths = read_index(tmp_path / "x.idx")
    assert dtype == I4
    assert read_lengths.tolist() == [3, 5]


def test_pointers_pass_two_gigabytes() -> None:
    content = index_bytes(np.array([2**30, 2**30, 1], np.int32), I4)
    assert struct.unpack_from("<3q", content, 34 + 12) == (0, 2**32, 2**33)


@pytest.mark.slow
def test_megatron_reads_the_pair(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of what it could use and does not find
        indexed_dataset = pytest.importorskip(
            "megatron.core.datasets.indexed_dataset",
            reason="megatron-core is not installed (pip install corpusmill[test])",
        )
    documents = [[1, 2, 3], [65_535], [5, 6]]
    for name, dtype in (("u", U2), ("i", I4)):
        put_shard(tmp_path, name, documents, dtype=dtype.str)
        opened = indexed_dataset.IndexedDataset(str(tmp_path / name))
        assert len(opened) == 3
        assert [opened[i].tolist() for i in range(3)] == documents
        assert opened[0].dtype == dtype
        assert opened.document_indices.tolist() == [0, 1, 2, 3]
        assert opened.get(0, offset=1, length=2).tolist() == [2, 3]
    put_shard(tmp_path, "empty", [])
    assert len(indexed_dataset.IndexedDataset(str(tmp_path / "empty"), mmap=False)) == 0
