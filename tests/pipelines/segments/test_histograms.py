import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.segments.histograms import bins_of, edges_of


@pytest.mark.parametrize(
    ("value", "number"),
    [(-3.0, 0), (0.0, 0), (0.0099, 0), (0.01, 1), (0.995, 99), (1.0, 100), (2.0, 109), (4.0, 117)],
)
def test_bins(value: float, number: int) -> None:
    assert bins_of(np.array([value])).tolist() == [number]


@given(st.floats(0, 1e12))
def test_a_value_lies_between_the_edges_of_its_bin(value: float) -> None:
    low, high = edges_of(int(bins_of(np.array([value]))[0]))
    assert low - 1e-9 <= value < high * (1 + 1e-9) or value == low == high
