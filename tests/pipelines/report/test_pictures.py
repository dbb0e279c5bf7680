import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.report.pictures import caption, histogram, quantile
from tests.pipelines.report.reading import counted


def test_kept_is_above_the_line_and_dropped_below_with_the_heights_of_shares() -> None:
    counts = {"kept": counted(0.1, 0.1, 0.1, 0.5), "dropped": counted(0.1, 0.5)}
    drawn = histogram(counts, [])
    assert list(drawn.bars) == ["kept", "dropped"]
    assert drawn.bars["kept"] == pytest.approx({10: 100 * 0.75 / 1.25, 50: 100 * 0.25 / 1.25})
    assert drawn.bars["dropped"] == pytest.approx({10: -100 * 0.5 / 1.25, 50: -100 * 0.5 / 1.25})
    assert drawn.base == pytest.approx(100 * 0.75 / 1.25)


def test_a_bar_that_would_hide_the_others_is_cut_and_says_its_share() -> None:
    counts = {"kept": counted(*[0.0] * 98, 0.05, 0.1), "dropped": {}}
    (label,) = histogram(counts, []).labels
    assert (label.text, label.kind, label.place) == ("98.0 % kept", "cut", 0.5)
    assert histogram(counts, []).bars["kept"] == pytest.approx({0: 100, 5: 50, 10: 50})
    assert not histogram({"kept": counted(0, 0, 0, 0.1)}, []).labels


def test_every_bound_is_a_line_at_its_value_with_a_label_of_its_own() -> None:
    counts = {"kept": counted(*np.linspace(0, 1, 50)), "dropped": {}}
    bounds = [(value, f"max {value} <zh>") for value in (0.9, 0.5, 0.51, 0.52)]
    labels = histogram(counts, bounds).labels
    assert [label.text for label in labels] == [text for _, text in sorted(bounds)]
    assert [label.place for label in labels] == pytest.approx([50, 51, 52, 90])
    assert {label.kind for label in labels} == {"bound"}


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


def test_a_caption_leaves_out_what_is_empty() -> None:
    assert caption({"kept": counted(5, 5), "dropped": {}}) == "2 kept: median 5"


VALUES = st.lists(
    st.one_of(
        st.floats(0, 1),
        st.floats(0, 1e9),
        st.sampled_from([0, 1e-4, 0.5, 1, 1.01, 699, 700, 1e15]),
    ),
    min_size=1,
    max_size=40,
)
BOUNDS = st.lists(st.sampled_from([0, 1e-6, 0.1, 0.5, 0.7, 0.71, 1, 50, 51, 1e6]), max_size=9)


@given(VALUES, VALUES, BOUNDS)
def test_nothing_leaves_a_picture_and_no_bar_is_lost(
    kept: list[float], dropped: list[float], bounds: list[float]
) -> None:
    counts = {"kept": counted(*kept), "dropped": counted(*dropped)}
    drawn = histogram(counts, [(bound, f"min {bound:g}") for bound in bounds])
    places = [label.place for label in drawn.labels]
    assert all(0 <= place <= drawn.cells for place in (*places, *drawn.ticks))
    for kind, sign in (("kept", 1), ("dropped", -1)):
        bars = drawn.bars[kind]
        assert 0 < len(bars) <= len(counts[kind])
        assert all(0 <= cell < drawn.cells for cell in bars)
        room = drawn.base if sign > 0 else 100 - drawn.base
        assert all(0 < sign * height <= room + 0.01 for height in bars.values())
