import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.dedup.minhash import (
    NUM_BANDS,
    NUM_SLOTS,
    Signatures,
    sign,
    similarity,
)

CHINESE = "清晨的集市上，卖豆腐的老人把担子放下，慢慢地吆喝起来，邻居们提着篮子围了过来。"
ENGLISH = "The old bridge over the river was closed for repairs during the whole summer."

WORDS = np.array([f"w{number:x}" for number in range(100_000)])
CHARACTERS = np.array([chr(code) for code in range(0x4E00, 0x9FA0)])
TEXT = st.one_of(
    st.text(st.sampled_from("ab ,") | st.sampled_from("清晨集市"), max_size=40),
    st.text(max_size=30),
    st.sampled_from([CHINESE, ENGLISH, ENGLISH * 9, CHINESE * 9]),
)


def same(one: Signatures, other: Signatures) -> bool:
    return all(map(np.array_equal, one.columns, other.columns))


def folded(text: str) -> str:
    return " ".join(text.split())


@settings(max_examples=60)
@given(st.lists(TEXT, max_size=8), st.integers(0, 8))
def test_a_signature_does_not_depend_on_its_batch(texts: list[str], cut: int) -> None:
    texts = [folded(text) for text in texts]
    whole = sign(texts)
    parts = [sign(part) for part in (texts[:cut], texts[cut:])]
    columns = zip(*(part.columns for part in parts), strict=True)
    assert same(whole, Signatures(*map(np.concatenate, columns)))
    order = list(range(len(texts)))[::-1]
    turned = sign([texts[at] for at in order])
    assert same(whole, Signatures(*(column[order] for column in turned.columns)))


def grams(units: list[str]) -> set[tuple[str, ...]]:
    return {tuple(units[at : at + 5]) for at in range(len(units) - 4)}


def jaccard(one: list[str], other: list[str]) -> float:
    return len(grams(one) & grams(other)) / len(grams(one) | grams(other))


def similar_pairs(
    rng: np.random.Generator, pool: np.ndarray, wanted: float, num: int
) -> list[tuple[list[str], list[str]]]:
    """Pairs of 400 units; the second has a stretch replaced, so that about so much is common."""
    size = 400
    keep = round(size * 2 * wanted / (1 + wanted))
    pairs = []
    for _ in range(num):
        one = rng.choice(pool, size).tolist()
        pairs.append((one, one[:keep] + rng.choice(pool, size - keep).tolist()))
    return pairs


@pytest.mark.parametrize(("pool", "separator"), [(WORDS, " "), (CHARACTERS, "")])
@pytest.mark.parametrize("wanted", [0.5, 0.6, 0.7, 0.8, 0.9])
def test_bands_are_shared_as_often_as_published_and_slots_tell_how_near(
    pool: np.ndarray, separator: str, wanted: float
) -> None:
    num = 300
    pairs = similar_pairs(np.random.default_rng(int(wanted * 10)), pool, wanted, num)
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
