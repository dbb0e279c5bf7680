import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.tables import (
    column,
    slice_between,
)


@pytest.mark.parametrize("chunks", [[], [[]], [[1, 2]], [[1], [2, 3]], [[], [4]]])
def test_column_is_every_chunk_in_its_type(chunks: list[list[int]]) -> None:
    arrays = [pa.array(chunk, pa.uint32()) for chunk in chunks]
    table = pa.table({"n": pa.chunked_array(arrays, pa.uint32())})
    found = column(table, "n")
    assert found.dtype == np.uint32
    assert found.tolist() == list(itertools.chain(*chunks))


UINT64 = st.one_of(
    st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1])
)


@given(st.lists(UINT64).map(sorted), UINT64, st.one_of(UINT64, st.just(2**64)))
def test_between_is_the_values_of_the_range(values: list[int], low: int, high: int) -> None:
    low, high = sorted((low, high))
    taken = slice_between(np.array(values, np.uint64), low, high)
    assert values[taken] == [value for value in values if low <= value < high]
