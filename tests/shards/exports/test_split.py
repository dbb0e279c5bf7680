import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tests.shards.datasets import put_dataset, take_down
from tests.shards.exports.worlds import export
from tests.shards.library import EOS


@pytest.mark.parametrize(("to", "dtype"), [("llm.c", "<u2"), ("numpy", "<i4")])
def test_memory_does_not_grow_with_a_shard(tmp_path: Path, to: str, dtype: str) -> None:
    directory = tmp_path / "dataset"
    length, documents = 20_000, 800
    tokens = np.full(length, 5, dtype)
    tokens[-1] = EOS
    prompts = [row % 2 for row in range(documents)]
    shard = {"documents": [tokens] * documents, "prompts": prompts, "dtype": dtype}
    shards = {"g0001-00/a/00000": shard}
    put_dataset(directory, shards, pieces=[b"x"] * 257, special={"eos": EOS})
    take_down(directory, *(f"g0001-00/a/00000:{row}" for row in range(0, documents, 10)))
    tracemalloc.start()
    try:
        assert export(directory, to, tmp_path / "out") == 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert size > 2 * length * documents * 0.9
    assert peak < 24 << 20
    if to == "numpy":
        found = np.load(tmp_path / "out" / "train" / "000000_a.npy", mmap_mode="r")
        assert found.dtype == dtype
        assert np.array_equal(found, np.tile(tokens, documents * 9 // 10))
