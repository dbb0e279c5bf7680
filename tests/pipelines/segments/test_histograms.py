import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.segments.histograms import bins_of, edges_of


@given(st.floats(0, 1e12))
def test_a_value_lies_between_the_edges_of_its_bin(value: float) -> None:
    low, high = edges_of(int(bins_of(np.array([value]))[0]))
    assert low - 1e-9 <= value < high * (1 + 1e-9) or value == low == high
