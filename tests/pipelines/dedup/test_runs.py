import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dedup.runs import run_starts, start_rows


def test_a_run_begins_where_any_column_changes() -> None:
    high, low = np.array([1, 1, 1, 2, 2]), np.array([5, 5, 6, 6, 6])
    first = run_starts(high, low)
    assert first.tolist() == [True, False, True, True, False]
    assert start_rows(first).tolist() == [0, 0, 2, 3, 3]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1))))
def test_runs_are_those_of_groupby(rows: list[tuple[int, int]]) -> None:
    rows.sort()
    columns = np.array(rows, np.int64).reshape(-1, 2).T
    first = run_starts(*columns)
    sizes = [len(list(group)) for _, group in itertools.groupby(rows)]
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    assert np.flatnonzero(first).tolist() == starts
    assert start_rows(first).tolist() == np.repeat(starts, sizes).tolist()
