from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.dedup.drops import (
    DROPS,
    EXACT,
    NEAR,
    Drops,
    count_drops,
    drop_path,
    drop_table,
    merge_drops,
)
from shards.range import EVERYTHING, Range
from shards.tables import write_table

Row = tuple[int, int, int, int, int]
"""order, segment, row, reason, own"""

ORDERS = [0, 1, 2, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(ORDERS),
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from([EXACT, NEAR]),
        st.integers(0, 1),
    ),
    max_size=30,
)


def table(rows: list[Row]) -> pa.Table:
    columns = list(map(list, zip(*sorted(rows), strict=True))) if rows else [[]] * 5
    return pa.table(columns, schema=DROPS)


def written(folder: Path, *parts: list[Row]) -> list[Path]:
    paths = [folder / f"{at}.drops" for at in range(len(parts))]
    for path, rows in zip(paths, parts, strict=True):
        write_table(path, table(rows))
    return paths


def listed(found: pa.Table) -> list[tuple[int, ...]]:
    return [tuple(row.values()) for row in found.to_pylist()]


def test_a_drop_table_is_sorted() -> None:
    orders = np.array([9, 5, 5, 5], np.uint64)
    segments, rows = (np.array(values, np.uint32) for values in ([0, 2, 1, 1], [1, 2, 9, 8]))
    found = drop_table(orders, segments, rows, reason=NEAR)
    assert found.schema == DROPS
    named = [(5, 1, 8, NEAR), (5, 1, 9, NEAR), (5, 2, 2, NEAR), (9, 0, 1, NEAR)]
    assert listed(found) == [(*row, 1) for row in named]
    known = np.array([True, False, False, True])
    found = drop_table(orders, segments, rows, reason=NEAR, known=known)
    assert listed(found) == [(*row, own) for row, own in zip(named, (0, 1, 1, 0), strict=True)]
    assert drop_path(Path("work"), "drops/abc") == Path("work/drops/abc.drops")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drops")


@settings(max_examples=40, deadline=None)
@given(parts=st.lists(ROWS, max_size=4), middle=st.sampled_from(ORDERS))
def test_merged_drops_name_each_document_once_with_the_first_reason(
    folder: Path, parts: list[list[Row]], middle: int
) -> None:
    best: dict[tuple[int, int, int], tuple[int, int]] = defaultdict(lambda: (NEAR, 1))
    for order, segment, row, *why in (row for part in parts for row in part):
        reason, own = why
        best[order, segment, row] = min(best[order, segment, row], (reason, own))
    paths = written(folder, *parts)
    ends = ((0, middle), (middle, 2**64))
    found = [merge_drops(paths, Range(low=low, high=high)) for low, high in ends]
    assert [row for part in found for row in listed(part)] == [
        (*key, *why) for key, why in sorted(best.items())
    ]
    assert all(row[0] < middle for row in listed(found[0]))


def test_drops_of_a_range_are_listed_by_segment(tmp_path: Path) -> None:
    half = 2**63
    first = [(5, 1, 30, 0, 1), (6, 0, 2, 1, 0), (half, 1, 7, 0, 0), (half - 1, 1, 4, 1, 1)]
    second = [(2, 1, 9, 0, 0), (2**64 - 1, 2, 8, 0, 1)]
    paths = written(tmp_path, first, second, [])
    low, high = (Drops.load(paths, Range.of(index, 2)) for index in (0, 1))
    assert [low.rows(at).tolist() for at in range(4)] == [[2], [4, 9, 30], [], []]
    assert [high.rows(at).tolist() for at in range(4)] == [[], [7], [8], []]
    orders = {reason: found.tolist() for reason, found in low.orders(1).items()}
    assert orders == {EXACT: [2, 5], NEAR: [half - 1]}
    some = Drops.load(paths, EVERYTHING, segments=[0, 2])
    assert [some.rows(at).tolist() for at in range(3)] == [[2], [], [8]]
    among = Drops.among(paths, np.array([6, half, 77], np.uint64))
    assert [among.rows(at).tolist() for at in range(3)] == [[2], [7], []]
    assert Drops.load([], EVERYTHING).rows(0).tolist() == []


def test_drops_are_counted_by_source_and_reason() -> None:
    rows = [
        (1, 0, 5, EXACT, 0), (2, 0, 6, NEAR, 1), (3, 1, 7, NEAR, 0), (4, 2, 8, NEAR, 0),
        (5, 2, 7, EXACT, 0), (6, 2, 9, EXACT, 1),
    ]  # fmt: skip
    dropped, known = count_drops(table(rows), ["b", "a", "b"])
    assert dropped == {
        "a": {"duplicate": 0, "near-duplicate": 1},
        "b": {"duplicate": 3, "near-duplicate": 2},
    }
    assert known == {
        "a": {"duplicate": 0, "near-duplicate": 1},
        "b": {"duplicate": 2, "near-duplicate": 1},
    }
