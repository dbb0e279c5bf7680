from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from shards.order.permutation import permutation_key, permute, text_key, unpermute

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


def test_keys_differ_in_every_part() -> None:
    keys = {
        permutation_key(seed, stream, scatter, epoch)
        for seed in range(4)
        for stream in ("a", "b", "0a")
        for scatter in range(4)
        for epoch in range(4)
    }
    assert len(keys) == 4 * 3 * 4 * 4
    assert text_key(1, "2x") != text_key(12, "x")


# How good the shuffle is: the measures are those at which other loaders' shuffles fail.
NUM, DRAWN = 1_000_003, 200_000


@pytest.fixture(scope="module")
def drawn() -> list[NDArray[Any]]:
    indices = np.arange(DRAWN)
    keys = [permutation_key(seed, "quality", 0, 0) for seed in range(4)]
    return [permute(indices, NUM, key).astype(np.int64) for key in keys]


def test_no_lag_is_correlated(drawn: list[NDArray[Any]]) -> None:
    """Of 4 x 1024 lags as many lie beyond 3 sigma as chance puts image, none beyond 5."""
    sigmas = []
    for values in drawn:
        spectrum = np.fft.rfft(values - values.mean(), 2 * DRAWN)
        correlation = np.fft.irfft(np.abs(spectrum) ** 2)[:1025]
        sigmas.append(correlation[1:] / correlation[0] * np.sqrt(DRAWN))
    assert np.abs(sigmas).max() < 5
    assert (np.abs(sigmas) > 3).mean() < 0.005  # expected: 0.0027
    assert np.abs(np.mean(sigmas, axis=0)[[0, 1, 3, 7, 15, 31]]).max() < 3 / np.sqrt(4)


def test_regions_in_a_batch(drawn: list[NDArray[Any]]) -> None:
    """512 draws fall into 64 regions as evenly as chance has it, and no more evenly."""
    for values in drawn:
        batches = values[: DRAWN // 512 * 512].reshape(-1, 512) * 64 // NUM
        counts = np.stack([np.bincount(batch, minlength=64) for batch in batches])
        chi2 = ((counts - 8) ** 2 / 8).sum(axis=1)
        assert abs(chi2.mean() - 63) < 4 * np.sqrt(2 * 63 / len(chi2))
        assert abs(chi2.std() / np.sqrt(2 * 63) - 1) < 0.2
