import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.segments.histograms import add_histograms, bins_of, edges_of, histograms


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


def test_histograms_tell_kept_from_dropped_and_leave_out_what_is_unknown() -> None:
    table = pa.table(
        {
            "verdict": ["kept", "dropped", "kept", "quarantined"],
            "bytes": pa.array([1, 2, 4, 8], pa.int64()),
            "tokens": pa.array([1, None, 1, None], pa.int32()),
            "score": pa.array([0.5, 0.25, None, None], pa.float32()),
            "c4.words": pa.array([None, 0.0, None, None], pa.float32()),
        }
    )
    found = histograms(table, ["c4.words"])
    assert found == {
        "bytes": {"kept": {"100": 1, "117": 1}, "dropped": {"109": 1}},
        "tokens": {"kept": {"100": 2}, "dropped": {}},
        "score": {"kept": {"50": 1}, "dropped": {"25": 1}},
        "c4.words": {"kept": {}, "dropped": {"0": 1}},
    }
    assert add_histograms([found, found])["tokens"]["kept"] == {"100": 4}
