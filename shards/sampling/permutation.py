"""Shuffles without a list: keyed bijections that are computed directly for any index.

    index in [0, n)  ->  (x, y) in [0, a) x [0, b)      a = floor(sqrt(n)) + 1, b = ceil(n / a)
                         x += F(y, key 0) mod a
                         y += F(x, key 1) mod b         eight rounds of a Feistel network
                         ...
                     ->  x + a·y, repeated from there until the result is below n

The network is FE1 of Black and Rogaway, "Ciphers with Arbitrary Finite Domains" (CT-RSA 2002): its
domain exceeds n by less than a, so that hardly any index needs a second pass. F is the finaliser
of splitmix64 (Steele, Lea, Flood, OOPSLA 2014; constants of Stafford's variant 13). Up to 64
elements the permutation is the ranking of 64-bit hashes, so that every order of them can occur.

The order of every training run depends on these functions. They never change: golden vectors in
the tests pin them.
"""

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]

_ROUNDS = 8
_RANKED = 64
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_ONE = np.uint64(1)
_HALF = np.uint64(32)
_ROUND_GAMMAS = (np.arange(1, _ROUNDS + 1, dtype=np.uint64) * _GAMMA)[:, None]
_RANK_GAMMAS = np.arange(1, _RANKED + 1, dtype=np.uint64) * _GAMMA


def text_key(seed: int, text: str) -> int:
    """Return the 64-bit BLAKE2b hash of a seed, any integer, and a text."""
    content = f"{seed}\0{text}".encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def permutation_key(seed: int, stream: str, scatter: int, epoch: int) -> int:
    """Return the 64-bit key of a stream's order in a scatter and an epoch."""
    base = np.array([text_key(seed, stream)], np.uint64)
    return int(derive(derive(base, [scatter]), [epoch])[0])


def derive(keys: Words, numbers: ArrayLike) -> Words:
    """Return keys derived from keys and non-negative numbers, elementwise; shapes broadcast."""
    return mix(keys + (np.atleast_1d(numbers).astype(np.uint64) + _ONE) * _GAMMA)


def mix(words: Words) -> Words:
    """Apply the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), a bijection."""
    words = (words ^ (words >> np.uint64(30))) * _FACTORS[0]
    words = (words ^ (words >> np.uint64(27))) * _FACTORS[1]
    return words ^ (words >> np.uint64(31))


def permute(indices: ArrayLike, sizes: ArrayLike, keys: ArrayLike) -> Words:
    """Return the image of each index; each key defines a bijection on [0, size).

    Args:
        indices: integers, each below its size.
        sizes: integers from 1 to 2^62.
        keys: uint64 (`permutation_key`). All three arguments broadcast to one dimension.

    Raises:
        ValueError: an index is not below its size.
    """
    return _apply(indices, sizes, keys, inverse=False)


def unpermute(indices: ArrayLike, sizes: ArrayLike, keys: ArrayLike) -> Words:
    """Return, for each index, the index that `permute` maps to it."""
    return _apply(indices, sizes, keys, inverse=True)


def _apply(indices: ArrayLike, sizes: ArrayLike, keys: ArrayLike, *, inverse: bool) -> Words:
    arrays = (np.atleast_1d(array).astype(np.uint64) for array in (indices, sizes, keys))
    values, limits, words = np.broadcast_arrays(*arrays)
    if bool((values >= limits).any()):
        raise ValueError(f"an index of {indices!r} is not below its size in {sizes!r}")
    small = limits <= _RANKED
    if not small.any():
        return _walk(values, limits, words, inverse=inverse)
    result = np.empty_like(values)
    result[small] = _rank(values[small], limits[small], words[small], inverse=inverse)
    large = ~small
    if large.any():
        result[large] = _walk(values[large], limits[large], words[large], inverse=inverse)
    return result


def _rank(values: Words, limits: Words, keys: Words, *, inverse: bool) -> Words:
    """Return each value's rank by hash in its range or, if `inverse`, the value of each rank."""
    width = int(limits.max())
    hashes = mix(keys[:, None] + _RANK_GAMMAS[:width])
    beyond = np.arange(width, dtype=np.uint64) >= limits[:, None]
    hashes[beyond] = ~np.uint64(0)
    rows = np.arange(len(values))
    if inverse:
        return np.argsort(hashes, axis=1, kind="stable")[rows, values].astype(np.uint64)
    ranks: Words = (hashes < hashes[rows, values][:, None]).sum(axis=1, dtype=np.uint64)
    return ranks


def _walk(values: Words, limits: Words, keys: Words, *, inverse: bool) -> Words:
    """Apply the network until every value is back in its range."""
    widths = np.sqrt(limits.astype(np.float64)).astype(np.uint64) + _ONE
    heights = (limits + widths - _ONE) // widths
    round_keys = mix(keys + _ROUND_GAMMAS)
    step = _backward if inverse else _forward
    result = step(values, widths, heights, round_keys)
    outside = np.flatnonzero(result >= limits)
    while outside.size:
        again = step(result[outside], widths[outside], heights[outside], round_keys[:, outside])
        result[outside] = again
        outside = outside[again >= limits[outside]]
    return result


def _forward(values: Words, widths: Words, heights: Words, round_keys: Words) -> Words:
    high = values // widths
    low = values - high * widths
    for i in range(0, _ROUNDS, 2):
        low = low + _below(high, round_keys[i], widths)
        low -= widths * (low >= widths)
        high = high + _below(low, round_keys[i + 1], heights)
        high -= heights * (high >= heights)
    return high * widths + low


def _backward(values: Words, widths: Words, heights: Words, round_keys: Words) -> Words:
    high = values // widths
    low = values - high * widths
    for i in range(_ROUNDS - 2, -1, -2):
        high = high + heights - _below(low, round_keys[i + 1], heights)
        high -= heights * (high >= heights)
        low = low + widths - _below(high, round_keys[i], widths)
        low -= widths * (low >= widths)
    return high * widths + low


def _below(words: Words, keys: Words, limits: Words) -> Words:
    """Return F: a hash of each word, scaled to [0, limit) by its upper 32 bits."""
    return ((mix(words + keys) >> _HALF) * limits) >> _HALF
