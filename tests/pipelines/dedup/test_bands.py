from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.dedup import bands
from pipelines.dedup.bands import (
    EDGES,
    Signers,
    are_similar,
    open_bands,
    read_slots,
    write_bands,
    write_slots,
)
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS


def random_slots(rng: np.random.Generator, num: int) -> np.ndarray:
    """Slots of three kinds of documents, more or less like their kind."""
    kinds = rng.integers(0, 256, (3, NUM_SLOTS))
    slots = kinds[rng.integers(0, 3, num)]
    slots[rng.random(slots.shape) < rng.random((num, 1)) / 3] += 1
    return slots.astype(np.uint8)


def test_pairs_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    slots = random_slots(rng, 100)
    one, other = slots[:50], slots[50:]
    whole = are_similar(one, other, threshold=0.5)
    monkeypatch.setattr(bands, "PAIRS_AT_ONCE", 7)
    assert are_similar(one, other, threshold=0.5).tolist() == whole.tolist()
    assert 0 < whole.sum() < 50


def test_slots_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    for num in (0, 1, 333):
        signers = Signers(
            rng.integers(0, 2**64, num, dtype=np.uint64),
            rng.integers(0, 2**32, num, dtype=np.uint32),
            random_slots(rng, num),
        )
        write_slots(tmp_path / "s.slots", signers)
        some = np.arange(num)[::-3]
        for name in ("order", "row", "slots"):
            one, other = read_slots(tmp_path / "s.slots", name), getattr(signers, name)
            assert np.array_equal(read_slots(tmp_path / "s.slots", name, some), other[some])
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bands")


EDGE_VALUES = [0, 1, 2**54 - 1, 2**54, 2**63, 2**63 - 1, 2**64 - 2**54, 2**64 - 1]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(EDGE_VALUES) | st.integers(0, 2**64 - 1), max_size=12),
        min_size=NUM_BANDS,
        max_size=NUM_BANDS,
    ),
    st.integers(0, NUM_BANDS - 1),
    st.sampled_from([0, 1, 2, 5, 10]),
)
def test_a_range_of_a_band_is_read_by_the_index(
    folder: Path, values: list[list[int]], band: int, bits: int
) -> None:
    orders = np.arange(12, dtype=np.uint64) * np.uint64(7)
    written = [np.array(each, np.uint64) for each in values]
    write_bands(folder / "s.bands", written, order=orders)
    wide = EDGES >> bits
    parts = [
        open_bands(folder / "s.bands", band, first=at * wide, last=(at + 1) * wide)
        for at in range(1 << bits)
    ]
    for at, part in enumerate(parts):
        assert all(value >> (64 - bits) == at if bits else True for value in part.hash.tolist())
    hashes, signers, order = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("hash", "signer", "order")
    )
    assert (hashes.dtype, signers.dtype, order.dtype) == (np.uint64, np.uint32, np.uint64)
    wanted = sorted((value, signer) for signer, value in enumerate(values[band]))
    assert list(zip(hashes.tolist(), signers.tolist(), strict=True)) == wanted
    assert order.tolist() == orders[signers].tolist()
