"""Three hashes of a document's identity, which make all random choices.

The identity of a record is (input name, path relative to that input, position); that of a document
also has its ordinal within the record. Identities depend neither on the machine nor on the order of
work. The hashes are keyed by the run's seed:

    order     of the document: decides its shard and its place there
    sample    of the record: `--sample F` keeps hash < F * 2**64, so larger samples contain
              smaller samples
    holdout   of the record: the smallest are validation; documents of a record stay together
"""

import hashlib

import numpy as np

from shards.sampling.permutation import mix


def order_hashes(
    source: str, relative: str, *, positions: np.ndarray, ordinals: np.ndarray, seed: int
) -> np.ndarray:
    """Return the order hash (uint64) of each document of one file.

    Args:
        source: Name of the input.
        relative: Path of the file relative to the input, with forward slashes.
        positions: int64[n], byte offsets or row numbers of the records.
        ordinals: int[n], numbers of the documents within their records.
        seed: Seed of the run.
    """
    records = _hashes("order", source, relative, positions, seed)
    steps = ordinals.astype(np.uint64) * np.uint64(_GOLDEN)
    return mix_bits(records + steps)


def sample_hashes(source: str, relative: str, positions: np.ndarray, *, seed: int) -> np.ndarray:
    """Return the sample hash (uint64) of each record of one file; arguments as in order_hashes."""
    return _hashes("sample", source, relative, positions, seed)


def holdout_hashes(source: str, relative: str, positions: np.ndarray, *, seed: int) -> np.ndarray:
    """Return the holdout hash (uint64) of each record of one file; arguments as in order_hashes."""
    return _hashes("holdout", source, relative, positions, seed)


def hash_bound(fraction: float) -> int:
    """Return the bound, at most 2**64, below which the hashes of a fraction of all records are."""
    return min(int(fraction * 2**64), 2**64)


_GOLDEN = 0x9E3779B97F4A7C15


def _hashes(
    domain: str, source: str, relative: str, positions: np.ndarray, seed: int
) -> np.ndarray:
    text = "\0".join((domain, str(seed), source, relative))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return mix_bits(positions.astype(np.uint64) ^ np.uint64(int.from_bytes(digest, "little")))


def mix_bits(values: np.ndarray) -> np.ndarray:
    """Return each value after two finalisers of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).

    It is a bijection, so records of one file never share a hash.
    """
    for _ in range(2):
        values = mix(values + np.uint64(_GOLDEN))
    return values
