import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.order.permutation import permutation_key, permute, unpermute

WORD = 2**64 - 1
KEY = permutation_key(1, "wudao", 0, 0)


@given(st.integers(1, 10_000), st.integers(0, WORD))
def test_a_bijection(size: int, key: int) -> None:
    image = permute(np.arange(size), size, key)
    assert np.array_equal(np.sort(image), np.arange(size))
    assert np.array_equal(unpermute(image, size, key), np.arange(size))


@pytest.mark.parametrize(
    ("args", "key"),
    [
        ((0, "", 0, 0), 0x50394B2614BE95F4),
        ((1, "wudao", 0, 0), 0xAAAD46172B301BEA),
        ((1, "wudao", 1, 0), 0xCA71A726935994EE),
        ((1, "wudao", 0, 1), 0xBF988749F52D23BE),
        ((2, "wudao", 0, 0), 0x8A82C4A56D34DBBC),
        ((-1, "悟道", 63, 10**6), 0x767DB03E0BE90BE9),
    ],
)
def test_golden_keys(args: tuple[int, str, int, int], key: int) -> None:
    assert permutation_key(*args) == key


def splitmix(word: int) -> int:
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
    return word ^ word >> 31


def one_by_one(index: int, size: int, key: int) -> int:
    """Return what `permute` must, from its definition, in Python's integers."""
    gamma = 0x9E3779B97F4A7C15
    keys = [
        splitmix(key + i * gamma & WORD) for i in range(1, max(size, 8) + 1 if size < 99 else 9)
    ]
    if size <= 64:
        return sum(other < keys[index] for other in keys[:size])
    a = int(np.sqrt(float(size))) + 1
    b = -(-size // a)
    while True:
        y, x = divmod(index, a)
        for i in range(0, 8, 2):
            x = (x + ((splitmix(y + keys[i] & WORD) >> 32) * a >> 32)) % a
            y = (y + ((splitmix(x + keys[i + 1] & WORD) >> 32) * b >> 32)) % b
        index = x + a * y
        if index < size:
            return index


@given(st.data(), st.integers(1, 2**62) | st.integers(1, 200), st.integers(0, WORD))
def test_vectors_are_as_defined(data: st.DataObject, size: int, key: int) -> None:
    index = data.draw(st.integers(0, size - 1))
    image = permute([index, 0], [size, 1], [key, key])
    assert image.tolist() == [one_by_one(index, size, key), 0]
    assert unpermute(image, [size, 1], [key, key]).tolist() == [index, 0]


@pytest.mark.parametrize(("index", "size"), [(5, 5), (0, 0), (-1, 10)])
def test_an_index_out_of_range(index: int, size: int) -> None:
    with pytest.raises(ValueError, match=rf"index of {index} is not below its size in {size}"):
        permute(index, size, KEY)
