import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.report.pictures import Bound, histogram, quantile
from pipelines.segments.histograms import bins_of


def counted(*values: float) -> dict[str, int]:
    """Return the histogram of some values."""
    numbers, counts = np.unique(bins_of(np.array(values, float)), return_counts=True)
    return {str(number): int(count) for number, count in zip(numbers, counts, strict=True)}


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=50), st.floats(0.01, 0.99))
def test_a_quantile_is_near_the_true_one(values: list[float], part: float) -> None:
    rank = int(np.ceil(part * len(values) - 1e-9)) - 1
    true = sorted(values)[max(rank, 0)]
    assert quantile(counted(*values), part) == pytest.approx(true, rel=0.1, abs=0.6)


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
    drawn = histogram(counts, [Bound(bound, "minimum", ["en"]) for bound in bounds])
    places = [label.place for label in drawn.labels]
    assert all(0 <= place <= drawn.cells for place in (*places, *drawn.ticks))
    for kind, sign in (("kept", 1), ("dropped", -1)):
        bars = drawn.bars[kind]
        assert 0 < len(bars) <= len(counts[kind])
        assert all(0 <= cell < drawn.cells for cell in bars)
        room = drawn.base if sign > 0 else 100 - drawn.base
        assert all(0 < sign * height <= room + 0.01 for height in bars.values())


@pytest.mark.parametrize(("verdict", "base"), [("kept", 100), ("dropped", 0)])
def test_what_only_one_verdict_has_fills_the_picture(verdict: str, base: int) -> None:
    assert histogram({verdict: counted(1, 2, 2, 3)}, []).base == base
