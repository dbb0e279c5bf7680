from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.report.axis import MOST_CELLS, MOST_TICKS, axis_of

VALUES = st.dictionaries(
    st.one_of(st.sampled_from([0.0, 0.015, 0.505, 1.0]), st.floats(0.005, 1e12)),
    st.integers(1, 10**9),
    min_size=1,
    max_size=60,
)
BOUNDS = st.lists(st.sampled_from([0, 0.01, 0.5, 1, 3, 50, 100_000]), max_size=3)


@given(VALUES, BOUNDS)
def test_every_value_bound_and_tick_has_a_place_in_order(
    counts: dict[float, int], bounds: list[float]
) -> None:
    axis = axis_of(counts, bounds)
    places = [axis.place(value) for value in sorted({*counts, *bounds})]
    assert places == sorted(places)
    assert all(0 <= place <= axis.cells for place in places)
    assert all(int(axis.place(value)) < axis.cells for value in counts)
    assert axis.cells <= 1.1 * max(MOST_CELLS, 101) + 3
    ticks = sorted(axis.ticks())
    assert 0 <= ticks[0] < ticks[-1] <= axis.cells
    assert 2 <= len(ticks) <= MOST_TICKS + 1
    assert all(right - left > axis.cells / 20 for left, right in pairwise(ticks))


@pytest.mark.parametrize(
    ("values", "bounds", "ticks"),
    [
        ([0.0, 0.1], [], "0 0.1 0.2"),
        ([0.0, 0.1], [0.3], "0 0.25 0.5"),
        ([0.2, 1.0], [], "0 0.5 1"),
        ([*[0.5] * 200, 3.0], [], "0 0.25 0.5 > 1"),  # one in two hundred is beyond 1
        ([0.5, 3.0], [], "0.5 1 2"),
        ([0.5], [2], "0.5 1 2"),
        ([100, 100_000], [], "100 1k 10k 100k"),
        ([0, 300, 100_000], [], "1k 10k 100k 0"),
        ([30, 200], [], "50 100 200"),
        ([0.5], [2e-7, 2], "1.0e-06 1.0e-04 0.01 1"),
        ([1e-2, 2e15], [], "0.01 100 1M 10G 100T"),
        ([610, 660, 690], [], "609 724"),  # no round number lies within
    ],
)
def test_shares_have_a_linear_axis_and_counts_one_of_logarithms(
    values: list[float], bounds: list[float], ticks: str
) -> None:
    assert " ".join(axis_of(Counter(values), bounds).ticks().values()) == ticks


def test_what_lies_beside_an_axis_has_a_place_of_its_own() -> None:
    counts = axis_of({0: 1, 10: 1, 20: 1}, [])
    assert counts.place(0) == 0.5
    assert counts.place(10) > 1.5
    shares = axis_of({0.5: 200, 1.0: 1, 7: 1}, [])
    assert shares.place(7) == shares.cells - 0.5
    assert shares.place(1) == 100
    assert axis_of({0.0: 1, 1.0: 1}, [5]).place(0) == 0.5
