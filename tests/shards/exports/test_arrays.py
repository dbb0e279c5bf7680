"""Files of arrays: numpy opens ours, and OLMo-core's are read as its readers do.

OLMo-core pins another torch, so that it is no part of the environment of the tests. Its layout is
documented in olmo_core/data/utils.py (iter_document_indices, load_array_slice).
"""

import gzip
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from shards.manifest import TRAIN, VALIDATION
from tests.shards.exports.worlds import World, export


def mapped(path: Path, dtype: str) -> np.ndarray:
    """An array behind a header that says its type."""
    array: np.ndarray = np.load(path, mmap_mode="r")
    assert array.dtype == dtype
    return array


def ends_in(path: Path) -> list[int]:
    """Where documents end, by the table beside a file of OLMo-core."""
    with gzip.open(path.with_suffix("").with_suffix(".csv.gz"), "rt") as lines:
        edges = [tuple(map(int, line.split(","))) for line in lines]
    assert [start for start, _ in edges] == [0, *(stop for _, stop in edges[:-1])]
    return [stop for _, stop in edges]


@pytest.mark.parametrize(
    ("to", "masks"), [("numpy", "loss"), ("olmo", "label_mask")], ids=["numpy", "olmo"]
)
@pytest.mark.parametrize("has_prompts", [True, False])
def test_documents_and_masks_are_there_in_order(
    world: World, plain: World, tmp_path: Path, to: str, masks: str, has_prompts: bool
) -> None:
    chosen, out = world if has_prompts else plain, tmp_path / "out"
    dtype = {"numpy": ("uint16", "int32"), "olmo": ("<u2", "<u4")}[to][not has_prompts]
    read = mapped if to == "numpy" else np.fromfile
    assert export(chosen, to, out) == 0
    for split in (TRAIN, VALIDATION):
        shards = chosen.shards(split)
        names = [f"{number:06d}_{each[0].source}.npy" for number, each in enumerate(shards)]
        assert sorted(path.name for path in (out / split).glob("*.npy")) == names
        # There is a mask for every file, or none.
        found = sorted(path.name for path in (out / f"{split}_{masks}").glob("*"))
        assert found == names * has_prompts
        for name, documents in zip(names, shards, strict=True):
            path = out / split / name
            tokens = [token for each in documents for token in each.tokens]
            assert read(path, dtype).tolist() == tokens
            ends = (
                ends_in(path)
                if to == "olmo"
                else mapped(out / f"{split}_ends" / name, "<i8").tolist()
            )
            assert ends == [*accumulate(len(each.tokens) for each in documents)]
            if has_prompts:
                loss = [i >= each.prompt for each in documents for i in range(len(each.tokens))]
                assert read(out / f"{split}_{masks}" / name, "bool").tolist() == loss
