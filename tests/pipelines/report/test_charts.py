import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.report.axis import MOST_CELLS, axis_of
from pipelines.report.charts import HEIGHT, WIDTH, Bound, caption, chart, quantile
from pipelines.report.markup import Markup
from pipelines.segments.histograms import PER_UNIT, bins_of, edges_of


def counted(*values: float) -> dict[str, int]:
    numbers, counts = np.unique(bins_of(np.array(values, float)), return_counts=True)
    return {str(number): int(count) for number, count in zip(numbers, counts, strict=True)}


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
    assert max(cells) < axis.cells <= 4 + max(MOST_CELLS + 1, PER_UNIT + 1)
    for number in numbers:
        low, _ = edges_of(number)
        if axis.logarithmic or low <= 1:
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


def numbers_of(svg: Markup, pattern: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, found.groups())) for found in re.finditer(pattern, svg)]


def test_kept_is_above_the_line_and_dropped_below_with_the_heights_of_shares() -> None:
    counts = {"kept": counted(0.1, 0.1, 0.1, 0.5), "dropped": counted(0.1, 0.5)}
    svg = chart(counts, [], name="x")
    bars = numbers_of(svg, r"M([\d.]+) ([\d.]+)V([\d.]+)H([\d.]+)V")
    assert len(bars) == 4
    heights = [base - tip for _, base, tip, _ in bars]
    assert heights == pytest.approx([HEIGHT * s / 1.25 for s in (0.75, 0.25, -0.5, -0.5)], abs=0.2)
    assert all(0 <= left < right <= WIDTH for left, _, _, right in bars)
    assert "4 kept: median 0.105" in svg


def test_a_bar_that_would_hide_the_others_is_cut_and_says_its_share() -> None:
    counts = {"kept": counted(*[0.0] * 98, 0.05, 0.1), "dropped": {}}
    svg = chart(counts, [], name="x")
    assert "98.0 %</text>" in svg
    assert svg.count('class="gap"') == 1
    assert "98.0 %</text>" not in chart({"kept": counted(0, 0, 0, 0.1)}, [], name="x")


def test_every_bound_is_a_line_at_its_value_with_a_label_of_its_own() -> None:
    counts = {"kept": counted(*np.linspace(0, 1, 50)), "dropped": {}}
    bounds = [Bound(value=v, label=f"max {v} <zh>") for v in (0.5, 0.51, 0.52, 0.9)]
    svg = chart(counts, bounds, name="x")
    lines = numbers_of(svg, r'class="mark" d="M([\d.]+) ')
    assert lines == sorted(lines)
    assert lines[0][0] == pytest.approx(6 + (WIDTH - 12) * 50 / 101, abs=0.1)
    places = numbers_of(svg, r'class="mark" x="([\d.]+)" y="([\d.]+)"')
    assert len(set(places)) == 4
    assert len({y for _, y in places[:3]}) == 3, "labels of neighbours stand in rows"
    assert svg.count("&lt;zh&gt;</text>") == 4


@pytest.mark.parametrize(
    ("values", "part", "value"),
    [
        ([0, 0, 0, 5], 0.5, 0),
        ([3, 5, 8], 0.5, 5),  # whole numbers stay whole
        ([3, 5, 8], 0.95, 8),
        ([1, 1, 2.5], 0.95, 2.49),  # between 2 and 3 there is none: not whole
        ([0.25], 0.5, 0.255),
    ],
)
def test_quantiles(values: list[float], part: float, value: float) -> None:
    assert quantile(counted(*values), part) == pytest.approx(value, abs=0.01)


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=50), st.floats(0.01, 0.99))
def test_a_quantile_is_near_the_true_one(values: list[float], part: float) -> None:
    rank = int(np.ceil(part * len(values) - 1e-9)) - 1
    true = sorted(values)[max(rank, 0)]
    assert quantile(counted(*values), part) == pytest.approx(true, rel=0.1, abs=0.6)


def test_a_caption_says_nothing_of_what_is_not_there() -> None:
    assert caption({"kept": counted(5, 5), "dropped": {}}) == "2 kept: median 5"
