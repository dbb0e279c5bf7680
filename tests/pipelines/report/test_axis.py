import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.report.axis import MOST_CELLS, axis_of
from pipelines.segments.histograms import PER_UNIT, bins_of, edges_of
from tests.pipelines.report.reading import counted

BINS = st.dictionaries(
    st.integers(0, PER_UNIT + 8 * 40).map(str), st.integers(1, 10**9), min_size=1, max_size=60
)
BOUNDS = st.lists(st.sampled_from([0, 0.01, 0.5, 1, 3, 50, 100_000]), max_size=3)


@given(BINS, BINS, BOUNDS)
def test_every_bin_and_bound_has_a_place_in_order(
    kept: dict[str, int], dropped: dict[str, int], bounds: list[float]
) -> None:
    axis = axis_of([kept, dropped], bounds)
    numbers = sorted(int(number) for number in {*kept, *dropped})
    cells = [axis.cell(number) for number in numbers]
    assert cells == sorted(cells)
    assert min(cells) >= 0
    assert max(cells) < axis.cells <= 9 + max(MOST_CELLS + 1, PER_UNIT + 1)
    for number in numbers:
        low, _ = edges_of(number)
        if axis.logarithmic or number <= PER_UNIT:
            assert axis.cell(number) - 1e-6 <= axis.place(low) <= axis.cell(number) + 1 + 1e-6
    assert all(0 <= axis.place(value) <= axis.cells for value in (*bounds, *axis.ticks()))


@pytest.mark.parametrize(
    ("values", "bounds", "logarithmic", "ticks"),
    [
        ([0.0, 0.1], [], False, [0, 0.1, 0.2]),
        ([0.0, 0.1], [0.3], False, [0, 0.25, 0.5]),
        ([0.2, 1.0], [], False, [0, 0.5, 1]),
        ([*[0.5] * 200, 3.0], [], False, [0, 0.5, 1]),  # one in two hundred is beyond 1
        ([0.5, 3.0], [], True, [0.5, 1, 2]),
        ([0.5], [2], True, [0.5, 1, 2]),
        ([100, 100_000], [], True, [100, 1_000, 10_000, 100_000]),
        ([30, 200], [], True, [50, 100, 200]),
        ([0.5], [2e-7, 2], True, [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1]),
        ([610, 660, 690], [], True, [2**9.25, 2**9.5]),  # no round number lies within
    ],
)
def test_shares_have_a_linear_axis_and_counts_one_of_logarithms(
    values: list[float], bounds: list[float], logarithmic: bool, ticks: list[float]
) -> None:
    axis = axis_of([counted(*values), {}], bounds)
    assert (axis.logarithmic, axis.ticks()) == (logarithmic, ticks)


def test_what_lies_beside_an_axis_has_a_place_of_its_own() -> None:
    counts = axis_of([counted(0, 10, 20), {}], [])
    assert counts.cell(0) == 0
    assert counts.cell(int(bins_of(np.array([10.0]))[0])) == counts.origin > 1
    shares = axis_of([counted(*[0.5] * 200, 7), {}], [])
    assert shares.cell(int(bins_of(np.array([7.0]))[0])) == shares.cells - 1
    assert shares.place(1) == PER_UNIT
    assert axis_of([counted(0, 1), {}], [5]).place(0) == 0
