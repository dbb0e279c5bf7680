from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from shards.manifest import TRAIN, VALIDATION
from tests.shards.exports.worlds import World, export


@pytest.mark.parametrize("dtype", ["uint16", "int32"])
def test_numpy_maps_it(world: World, plain: World, tmp_path: Path, dtype: str) -> None:
    chosen = world if dtype == "uint16" else plain
    out = tmp_path / "out"
    assert export(chosen, "numpy", out) == 0
    for split in (TRAIN, VALIDATION):
        for number, documents in enumerate(chosen.shards(split)):
            name = f"{number:06d}_{documents[0].source}.npy"
            tokens = np.load(out / split / name, mmap_mode="r")
            assert tokens.dtype == dtype
            assert tokens.tolist() == [token for each in documents for token in each.tokens]
            ends = np.load(out / f"{split}_ends" / name, mmap_mode="r")
            assert ends.dtype == "int64"
            assert ends.tolist() == [*accumulate(len(each.tokens) for each in documents)]
            if dtype == "uint16":
                loss = np.load(out / f"{split}_loss" / name, mmap_mode="r")
                assert loss.tolist() == [
                    i >= each.prompt for each in documents for i in range(len(each.tokens))
                ]
    assert len([*(out / TRAIN).iterdir()]) == len(chosen.shards())
    assert (out / "train_loss").exists() == (dtype == "uint16")
