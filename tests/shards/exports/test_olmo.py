"""OLMo-core pins another torch, so that it is no part of the environment of the tests.

`read` does what its readers do (olmo_core/data/utils.py: iter_document_indices,
load_array_slice), which is their documented layout.
"""

import gzip
from pathlib import Path

import numpy as np
import pytest

from shards.manifest import TRAIN, VALIDATION
from tests.shards.exports.worlds import World, export


def read(path: Path, dtype: str) -> list[tuple[int, ...]]:
    """The documents of a file, by the table beside it."""
    documents = []
    with gzip.open(path.with_suffix("").with_suffix(".csv.gz"), "rt") as lines:
        for line in lines:
            start, stop, *_ = map(int, line.split(","))
            size = np.dtype(dtype).itemsize
            with path.open("rb") as file:
                file.seek(start * size)
                documents.append(
                    tuple(np.frombuffer(file.read((stop - start) * size), dtype).tolist())
                )
    return documents


@pytest.mark.parametrize("dtype", ["<u2", "<u4"])
def test_documents_and_masks_are_there_in_order(
    world: World, plain: World, tmp_path: Path, dtype: str
) -> None:
    chosen = world if dtype == "<u2" else plain
    out = tmp_path / "out"
    assert export(chosen, "olmo", out) == 0
    for split in (TRAIN, VALIDATION):
        paths = sorted((out / split).glob("*.npy"))
        wanted = chosen.shards(split)
        assert [path.name for path in paths] == [
            f"{number:06d}_{documents[0].source}.npy" for number, documents in enumerate(wanted)
        ]
        for path, documents in zip(paths, wanted, strict=True):
            tokens = [document.tokens for document in documents]
            assert read(path, dtype) == tokens
            assert np.fromfile(path, dtype).tolist() == [token for each in tokens for token in each]
        masks = sorted((out / f"{split}_label_mask").glob("*.npy"))
        # There is one for every file, or none.
        assert [path.name for path in masks] == [path.name for path in paths] * (dtype == "<u2")
        for path, documents in zip(masks, wanted, strict=False):
            loss = [i >= each.prompt for each in documents for i in range(len(each.tokens))]
            assert np.fromfile(path, np.bool_).tolist() == loss
