"""Signatures estimate the similarity of texts as the published method does."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from pipelines.dedup.fingerprint import Fingerprinter
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS, Signatures, similarity

WORDS = np.array([f"w{number:x}" for number in range(100_000)])
CHARACTERS = np.array([chr(code) for code in range(0x4E00, 0x9FA0)])


def sign(texts: Sequence[str]) -> Signatures:
    column = pa.array(texts, pa.large_string())
    found = Fingerprinter(near=True).fingerprints(column).signatures
    assert found is not None
    return found


def grams(units: list[str]) -> set[tuple[str, ...]]:
    return {tuple(units[at : at + 5]) for at in range(len(units) - 4)}


def jaccard(one: list[str], other: list[str]) -> float:
    return len(grams(one) & grams(other)) / len(grams(one) | grams(other))


@pytest.mark.parametrize(("pool", "separator"), [(WORDS, " "), (CHARACTERS, "")])
@pytest.mark.parametrize("wanted", [0.5, 0.6, 0.7, 0.8, 0.9])
def test_bands_are_shared_as_often_as_published_and_slots_tell_how_near(
    pool: np.ndarray, separator: str, wanted: float
) -> None:
    """The pairs are texts of 400 units, and the end of the second is replaced."""
    num, size = 300, 400
    keep = round(size * 2 * wanted / (1 + wanted))
    rng = np.random.default_rng(int(wanted * 10))
    pairs = []
    for units in rng.choice(pool, (num, size)).tolist():
        pairs.append((units, units[:keep] + rng.choice(pool, size - keep).tolist()))
    exact = np.array([jaccard(*pair) for pair in pairs])
    assert abs(exact.mean() - wanted) < 0.03
    one, other = (sign([separator.join(pair[side]) for pair in pairs]) for side in (0, 1))
    hits = (one.bands == other.bands).any(axis=1).sum()
    chance = 1 - (1 - exact**8) ** NUM_BANDS
    error = np.sqrt((chance * (1 - chance)).sum())
    assert abs(hits - chance.sum()) < 4 * error + 1
    off = similarity(one.slots, other.slots) - exact
    spread = np.sqrt((exact * (1 - exact)).mean() / NUM_SLOTS)
    assert abs(off.mean()) < 4 * spread / np.sqrt(num)
    assert 0.8 * spread < np.sqrt((off**2).mean()) < 1.2 * spread
