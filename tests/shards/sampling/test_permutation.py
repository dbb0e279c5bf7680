import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.sampling.permutation import permutation_key, permute, unpermute

WORD = 2**64 - 1
KEY = permutation_key(1, "wudao", 0, 0)


@given(st.integers(1, 10_000), st.integers(0, WORD))
def test_a_bijection(size: int, key: int) -> None:
    image = permute(np.arange(size), size, key)
    assert np.array_equal(np.sort(image), np.arange(size))
    assert np.array_equal(unpermute(image, size, key), np.arange(size))


@pytest.mark.parametrize(
    ("size", "digest"),
    [
        (64, "18c11872ef82721c"),
        (65, "191fc10c0436ce1b"),
        (10_000, "f48aa2e9aedab759"),
        (2**62, "b69d8db7566bba6b"),
    ],
)
def test_golden_orders(size: int, digest: str) -> None:
    index = np.arange(0, size, max(size // 1000, 1))
    image = permute(index, size, KEY)
    assert np.array_equal(unpermute(image, size, KEY), index)
    assert hashlib.sha256(image.astype("<i8").tobytes()).hexdigest()[:16] == digest


def test_each_index_may_have_a_size_and_a_key_of_its_own() -> None:
    rows = np.array([[3, 70, KEY], [0, 1, KEY], [8, 9, 5]], np.uint64)
    image = permute(*rows.T)
    assert image.tolist() == [int(permute(*row)[0]) for row in rows]
    assert unpermute(image, *rows.T[1:]).tolist() == [3, 0, 8]
