"""Guarantee: Megatron's `IndexedDataset` reads the pair `.bin`, `.idx`."""

import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

from shards.format import index_bytes
from tests.shards.datasets import put_shard

U2, I4 = np.dtype("<u2"), np.dtype("<i4")


def test_pointers_pass_two_gigabytes() -> None:
    content = index_bytes(np.array([2**30, 2**30, 1], np.int32), I4)
    assert struct.unpack_from("<3q", content, 34 + 12) == (0, 2**32, 2**33)


@pytest.mark.slow
def test_megatron_reads_the_pair(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Megatron warns about libraries that it does not find
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
