from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.dedup import bands
from pipelines.dedup.bands import (
    EDGES,
    BandRows,
    Signers,
    are_similar,
    match_signers,
    open_bands,
    read_slots,
    write_bands,
    write_slots,
)
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS, similarity

KINDS = (("hash", np.uint64), ("signer", np.uint32), ("copies", np.uint8))


def random_bands(rng: np.random.Generator, num: int, *, values: int) -> np.ndarray:
    """Bands of which many agree; the values lie everywhere."""
    chosen = rng.integers(0, 2**64, (NUM_BANDS, values), dtype=np.uint64)
    return np.stack([rng.choice(band, num) for band in chosen], axis=1)


def random_slots(rng: np.random.Generator, num: int) -> np.ndarray:
    """Slots of three kinds of documents, more or less like their kind."""
    kinds = rng.integers(0, 256, (3, NUM_SLOTS))
    slots = kinds[rng.integers(0, 3, num)]
    slots[rng.random(slots.shape) < rng.random((num, 1)) / 3] += 1
    return slots.astype(np.uint8)


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("num", [0, 1, 2, 60])
def test_neighbours_are_what_the_rules_say(num: int, threshold: float) -> None:
    rng = np.random.default_rng(num)
    hashes, slots = random_bands(rng, num, values=20), random_slots(rng, num)
    found = match_signers(hashes, slots, threshold=threshold)
    links, compared, failed = set(), 0, 0
    for band in range(NUM_BANDS):
        wanted = []
        for value in np.unique(hashes[:, band]):
            smallest, *others = np.flatnonzero(hashes[:, band] == value).tolist()
            close = [
                at
                for at in others
                if not threshold or similarity(slots[[at]], slots[[smallest]])[0] >= threshold
            ]
            links |= {(at, smallest) for at in close}
            wanted.append((int(value), smallest, 1 + len(close)))
            wanted += [(int(value), at, 1) for at in others if at not in close]
            compared += len(others)
            failed += len(others) - len(close)
        rows = found.bands[band]
        columns = (rows.hash.tolist(), rows.signer.tolist(), rows.copies.tolist())
        assert list(zip(*columns, strict=True)) == wanted
    assert [tuple(pair) for pair in found.links.tolist()] == sorted(links)
    assert (found.compared, found.failed) == (compared, failed)
    assert (failed > 0) == (num == 60 and threshold > 0)


def test_copies_stop_at_what_a_byte_holds() -> None:
    same = np.zeros((1000, NUM_BANDS), np.uint64)
    found = match_signers(same, np.zeros((1000, NUM_SLOTS), np.uint8), threshold=0.7)
    assert [rows.copies.tolist() for rows in found.bands] == [[128]] * NUM_BANDS
    assert found.links[:, 0].tolist() == list(range(1, 1000))
    assert not found.links[:, 1].any()


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
    written = [
        BandRows(
            np.array(sorted(each), np.uint64),
            np.arange(len(each), dtype=np.uint32) + 1000 * number,
            np.full(len(each), number, np.uint8),
        )
        for number, each in enumerate(values)
    ]
    orders = np.arange(20_000, dtype=np.uint64) * np.uint64(7)
    write_bands(folder / "s.bands", written, order=orders)
    wide = EDGES >> bits
    parts = [
        open_bands(folder / "s.bands", band, first=at * wide, last=(at + 1) * wide)
        for at in range(1 << bits)
    ]
    for at, part in enumerate(parts):
        assert all(value >> (64 - bits) == at if bits else True for value in part.hash.tolist())
    for name, kind in KINDS:
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert joined.dtype == kind
        assert np.array_equal(joined, getattr(written[band], name))
    joined = np.concatenate([part.order for part in parts])
    assert joined.tolist() == (orders[written[band].signer]).tolist()
