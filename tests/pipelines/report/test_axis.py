from itertools import pairwise

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
