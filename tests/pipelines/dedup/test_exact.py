import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dedup import exact as dedup
from pipelines.dedup.exact import (
    MOST_GROWTH,
    ROWS_PER_TASK,
    SIGNATURES,
    Candidates,
    duplicate_mask,
    group_by_hash,
    group_sizes,
    num_ranges,
    run_starts,
    signature_table,
    size_histogram,
)

Row = tuple[int, int, int, int, int]
"""high, low, order, segment, row"""

# Few values, so that some agree in the high half alone, some above the index bits of the sort
# alone, some in both halves, some in the order as well.
HIGH = st.sampled_from([0, 1, 2, 1 << 20, (1 << 20) + 1, 1 << 62, 2**63, 2**64 - 1, 2**64 - 2])
LOW = st.sampled_from([0, 1, 2**64 - 1])
ROWS = st.lists(st.tuples(HIGH, LOW, st.integers(0, 9), st.integers(0, 3)), max_size=60).map(
    lambda rows: [(*row, at) for at, row in enumerate(rows)]
)


def candidates(rows: list[Row]) -> Candidates:
    columns = np.array(rows, dtype=object).reshape(-1, 5).T
    kinds = (np.uint64, np.uint64, np.uint64, np.uint32, np.uint32)
    values = [column.astype(kind) for column, kind in zip(columns, kinds, strict=True)]
    return Candidates(*values, np.ones(len(rows), np.uint8))


def mask_of(found: Candidates, *, range_bits: int = 0) -> np.ndarray:
    return duplicate_mask(len(found.high), group_by_hash(found, range_bits=range_bits))


def brute_force(rows: list[Row]) -> list[bool]:
    """Which rows to drop: all but the smallest (order, segment, row) of each hash."""
    best: dict[tuple[int, int], tuple[int, int, int]] = {}
    for high, low, *rank in rows:
        key = (high, low)
        best[key] = min(best.get(key, (2**64, 0, 0)), (rank[0], rank[1], rank[2]))
    return [best[high, low] != (order, segment, row) for high, low, order, segment, row in rows]


@given(ROWS)
def test_duplicates_are_all_but_the_smallest_of_each_hash(rows: list[Row]) -> None:
    assert mask_of(candidates(rows)).tolist() == brute_force(rows)


@given(ROWS, st.integers(0, 4))
def test_ranges_find_together_what_one_range_finds(rows: list[Row], bits: int) -> None:
    found = []
    for index in range(1 << bits):
        inside = [row for row in rows if row[0] >> (64 - bits) == index]
        mask = mask_of(candidates(inside), range_bits=bits).tolist()
        found += [row for row, dropped in zip(inside, mask, strict=True) if dropped]
    wanted = [row for row, dropped in zip(rows, brute_force(rows), strict=True) if dropped]
    assert sorted(found) == sorted(wanted)


def test_the_high_bits_of_a_range_do_not_hide_the_rest() -> None:
    """Within range 5 of 16 all share four bits; what differs lies below them."""
    rng = np.random.default_rng(1)
    high = (np.uint64(5) << np.uint64(60)) | rng.integers(0, 500, 3000).astype(np.uint64)
    rows = [
        (int(value), int(value) % 3, int(order), 0, at)
        for at, (value, order) in enumerate(zip(high, rng.permutation(3000), strict=True))
    ]
    mask = mask_of(candidates(rows), range_bits=4).tolist()
    assert mask == brute_force(rows)
    assert mask.count(False) == len(set(high.tolist()))


@pytest.mark.parametrize("num", [0, 1, 2])
def test_few_documents_are_no_special_case(num: int) -> None:
    rows: list[Row] = [(7, 7, 10 - at, 0, at) for at in range(num)]
    assert mask_of(candidates(rows)).tolist() == [True, False][2 - num :]


def test_columns_are_left_as_they_were() -> None:
    rows: list[Row] = [(3, 1, 5, 0, 0), (3, 1, 4, 0, 1), (2, 1, 4, 0, 2)]
    found = candidates(rows)
    mask_of(found)
    for values in (found.high, found.low, found.order, found.segment, found.row):
        assert values.flags.writeable
    assert found.high.tolist() == [3, 3, 2]
    assert found.order.tolist() == [5, 4, 4]


@pytest.mark.parametrize(
    ("rows", "ranges"),
    [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 4), (40, 4), (41, 8), (1000, 128)],
)
def test_ranges_are_the_least_power_of_two_that_fits(
    monkeypatch: pytest.MonkeyPatch, rows: int, ranges: int
) -> None:
    monkeypatch.setattr(dedup, "ROWS_PER_TASK", 10)
    assert num_ranges(rows) == ranges


def test_signatures_are_sorted_by_hash() -> None:
    rows: list[Row] = [
        (9, 1, 50, 2, 7),
        (9, 1, 40, 1, 3),
        (9, 1, 60, 0, 5),
        (1, 5, 45, 0, 6),
        (1, 4, 45, 3, 1),
        (1, 4, 45, 3, 0),
        (1, 4, 45, 1, 9),
    ]
    found = candidates(rows)
    mask = mask_of(found)
    signatures = signature_table(found, mask)
    assert signatures.schema == SIGNATURES
    assert [tuple(row.values()) for row in signatures.to_pylist()] == [
        (1, 4, 45),
        (1, 5, 45),
        (9, 1, 40),
    ]


@given(ROWS)
def test_every_hash_has_one_signature_with_its_smallest_order(rows: list[Row]) -> None:
    found = candidates(rows)
    mask = mask_of(found)
    smallest: dict[tuple[int, int], int] = {}
    for high, low, order, _, _ in rows:
        smallest[high, low] = min(order, smallest.get((high, low), order))
    table = signature_table(found, mask)
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (*key, order) for key, order in sorted(smallest.items())
    ]
    assert mask.sum() + len(table) == len(rows)


def test_empty_columns_have_their_types() -> None:
    found = Candidates.empty(3)
    columns = (found.high, found.low, found.order, found.segment, found.row, found.copies)
    assert [values.dtype.itemsize for values in columns] == [8, 8, 8, 4, 4, 1]
    assert {len(values) for values in columns} == {3}


@given(ROWS, st.integers(1, 20))
def test_blocks_decide_nothing(rows: list[Row], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup, "BLOCK_ROWS", size)
        found = list(group_by_hash(candidates(rows), range_bits=0))
    assert duplicate_mask(len(rows), found).tolist() == brute_force(rows)
    num = sum(int(group.first.sum()) for group in found)
    shared = {row[:2] for row in rows if sum(row[:2] == other[:2] for other in rows) > 1}
    assert num >= len(shared)


def test_groups_are_counted_by_size_with_the_copies_of_segments() -> None:
    rows: list[Row] = [(hash, 0, at, 0, at) for at, hash in enumerate([1, 1, 2, 3, 4, 4, 5])]
    found = candidates(rows)
    copies = np.array([1, 1, 1, 7, 98, 2, 128], np.uint8)
    sizes = group_sizes(copies, group_by_hash(found, range_bits=0))
    assert sizes == {"2": 1, "3": 0, "4": 0, "5-9": 1, "10-99": 0, "100+": 2}
    nothing = candidates([])
    assert set(group_sizes(nothing.copies, group_by_hash(nothing, range_bits=0)).values()) == {0}


def test_histogram_counts_from_two_on() -> None:
    sizes = np.array([1, 1, 2, 2, 2, 3, 4, 4, 5, 9, 10, 99, 100, 10**12])
    assert size_histogram(sizes) == {"2": 3, "3": 1, "4": 2, "5-9": 2, "10-99": 2, "100+": 2}


@pytest.mark.parametrize(
    ("rows", "ranges"),
    [
        (512 * ROWS_PER_TASK, 512),
        (512 * ROWS_PER_TASK + 1, 512),
        (512 * MOST_GROWTH * ROWS_PER_TASK, 512),
        (512 * MOST_GROWTH * ROWS_PER_TASK + 1, 1024),
        (33_000_000_000, 4096),
    ],
)
def test_tasks_grow_before_ranges_become_too_many(rows: int, ranges: int) -> None:
    assert num_ranges(rows) == ranges


def test_a_run_begins_where_any_column_changes() -> None:
    high, low = np.array([1, 1, 1, 2, 2]), np.array([5, 5, 6, 6, 6])
    first = run_starts(high, low)
    assert first.tolist() == [True, False, True, True, False]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1))))
def test_runs_are_those_of_groupby(rows: list[tuple[int, int]]) -> None:
    rows.sort()
    columns = np.array(rows, np.int64).reshape(-1, 2).T
    first = run_starts(*columns)
    sizes = [len(list(group)) for _, group in itertools.groupby(rows)]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    assert np.flatnonzero(first).tolist() == starts
