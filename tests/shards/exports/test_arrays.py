"""Files of arrays, of tokens of two bytes and of four; golden rows pin what lies beside them.

OLMo-core pins another torch, so that it is no part of the environment of the tests. Its layout is
documented in olmo_core/data/utils.py (iter_document_indices, load_array_slice).
"""

from pathlib import Path

import numpy as np
import pytest

from shards.manifest import TRAIN, VALIDATION
from tests.shards.exports.worlds import export, leaving


@pytest.mark.parametrize(
    ("to", "dtypes"), [("numpy", ("uint16", "int32")), ("olmo", ("<u2", "<u4"))]
)
def test_tokens_are_there_in_order(
    world: Path, plain: Path, tmp_path: Path, to: str, dtypes: tuple[str, str]
) -> None:
    for chosen, dtype in zip((world, plain), dtypes, strict=True):
        out = tmp_path / np.dtype(dtype).name
        assert export(chosen, to, out) == 0
        for split in (TRAIN, VALIDATION):
            for number, (source, documents) in enumerate(leaving(chosen, split)):
                path = out / split / f"{number:06d}_{source}.npy"
                found = np.load(path) if to == "numpy" else np.fromfile(path, dtype)
                assert found.dtype == dtype
                tokens = [token for document in documents for token in document.tokens]
                assert found.tolist() == tokens
