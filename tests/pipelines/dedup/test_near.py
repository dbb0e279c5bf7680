from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.dedup.bands import BandRows, Signers, write_bands, write_slots
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.dedup.near import (
    Members,
    edges_between,
    group_rows,
    look_up,
    pair_with_smallest,
    read_range,
)


@pytest.fixture
def slots(tmp_path: Path) -> list[Path]:
    """Three segments, of 3, 0 and 2 signers; the last signer is unlike all others."""
    paths = []
    for number, orders in enumerate([[5, 7, 9], [], [5, 6]]):
        paths.append(tmp_path / f"s{number}.slots")
        rows = np.arange(len(orders), dtype=np.uint32) + 10 * number
        values = np.full((len(orders), NUM_SLOTS), number, np.uint8)
        values[:-1] = 0
        write_slots(paths[-1], Signers(np.array(orders, np.uint64), rows.astype(np.uint32), values))
    return paths


def test_columns_are_looked_up_in_any_order(slots: list[Path]) -> None:
    segment, signer = np.array([2, 0, 2, 0]), np.array([1, 2, 0, 0])
    orders = look_up(slots, "order", segment=segment, signer=signer)
    assert (orders.tolist(), orders.dtype) == ([6, 9, 5, 5], np.uint64)
    rows = look_up(slots, "row", segment=segment, signer=signer)
    assert (rows.tolist(), rows.dtype) == ([21, 2, 20, 0], np.uint32)
    values = look_up(slots, "slots", segment=segment, signer=signer)
    assert (values[:, 0].tolist(), values.shape) == ([2, 0, 0, 0], (4, NUM_SLOTS))
    nothing = look_up(slots, "slots", segment=segment[:0], signer=signer[:0])
    assert nothing.shape == (0, NUM_SLOTS)


@pytest.mark.parametrize("ranges", [1, 2, 1024])
def test_a_range_is_read_of_every_segment(tmp_path: Path, ranges: int) -> None:
    rng = np.random.default_rng(1)
    paths, written = [], []
    for number, num in enumerate([40, 0, 25]):
        bands = [rng.integers(0, 2**64, num, dtype=np.uint64) for _ in range(NUM_BANDS)]
        paths.append(tmp_path / f"s{number}.bands")
        write_bands(paths[-1], bands, order=np.arange(num, dtype=np.uint64) + np.uint64(number))
        written.append(np.sort(bands[5]))
    seen = 0
    for index in range(ranges):
        rows, starts = read_range(paths, 5, index=index, ranges=ranges)
        wanted = [
            [value for value in hashes.tolist() if value * ranges >> 64 == index]
            for hashes in written
        ]
        assert rows.hash.tolist() == [value for part in wanted for value in part]
        assert rows.order.tolist() == (rows.signer + np.repeat([0, 1, 2], np.diff(starts))).tolist()
        assert starts.tolist() == np.cumsum([0, *map(len, wanted)]).tolist()
        seen += len(rows.hash)
    assert seen == 65


@pytest.mark.parametrize(("threshold", "passed"), [(0.0, [True] * 3), (0.7, [True, True, False])])
def test_each_is_paired_with_the_smallest_ties_by_segment(
    slots: list[Path], threshold: float, passed: list[bool]
) -> None:
    """Orders 5, 7 and 9 of segment 0 (the last alone in the band), 5 and 6 of segment 2."""
    hashes = np.array([1, 1, 2, 1, 1], np.uint64) << np.uint64(40)
    signers = np.array([1, 0, 2, 0, 1], np.uint32)
    orders = np.array([7, 5, 9, 5, 6], np.uint64)
    rows = BandRows(hashes, orders, signers)
    starts, known = np.array([0, 3, 3, 5]), np.zeros(5, bool)
    options: dict[str, Any] = {"slots": slots, "threshold": threshold}
    (groups,) = group_rows(rows, range_bits=0)
    assert groups.rows.tolist() == [1, 3, 4, 0]
    assert groups.first.tolist() == [True, False, False, False]
    (found,) = pair_with_smallest(rows, starts, groups, known=known, **options)
    assert found.member.order.tolist() == [5, 6, 7]
    assert found.member.segment.tolist() == [2, 2, 0]
    assert found.smallest.order.tolist() == [5, 5, 5]
    assert found.smallest.segment.tolist() == [0, 0, 0]
    expected = dict(zip([5, 7, 6], passed, strict=True))
    assert found.passed.tolist() == [expected[order] for order in [5, 6, 7]]
    known[[0, 1, 3, 4]] = True
    (left_out,) = pair_with_smallest(rows, starts, groups, known=known, **options)
    assert len(left_out.member) == len(left_out.passed) == 0


def test_edges_name_segment_and_signer() -> None:
    one = Members(*(np.array([value], kind) for value, kind in zip((9, 3, 7), KINDS, strict=True)))
    other = Members(
        *(np.array([value], kind) for value, kind in zip((8, 2, 1), KINDS, strict=True))
    )
    found = edges_between(one, other)
    assert found.order.tolist() == [9]
    assert found.place.tolist() == [(3 << 32) + 7]
    assert (found.to_order.tolist(), found.to_place.tolist()) == ([8], [(2 << 32) + 1])


KINDS = (np.uint64, np.uint32, np.uint32)
