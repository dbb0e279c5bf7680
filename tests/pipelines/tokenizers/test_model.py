import importlib.metadata

import numpy as np
import pytest

from pipelines.tokenizers.model import flatten, version


def test_flat_arrays_can_be_split_again() -> None:
    tokens, lengths = flatten([np.array([1, 2], np.uint32), np.array([], np.uint32), np.array([3])])
    assert (tokens.tolist(), lengths.tolist()) == ([1, 2, 3], [2, 0, 1])
    tokens, lengths = flatten([])
    assert (tokens.shape, lengths.shape, lengths.dtype) == ((0,), (0,), np.int64)


def test_version_names_the_library() -> None:
    assert version("numpy") == f"numpy {np.__version__}"
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        version("no-such-library")
