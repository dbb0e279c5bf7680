import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.segments.rows import NAME
from shards.tables import (
    between,
    column,
    open_table,
    write_table,
)


def test_a_table_comes_back_as_one_batch_mapped(tmp_path: Path) -> None:
    parts = [
        pa.table({"n": pa.array([at], pa.uint64()), "s": pa.array([word]).cast(NAME)})
        for at, word in enumerate(["a", "b", "a"])
    ]
    write_table(tmp_path / "deep" / "t", pa.concat_tables(parts))
    found = open_table(tmp_path / "deep" / "t")
    assert found["s"].to_pylist() == ["a", "b", "a"]
    assert found["n"].num_chunks == 1
    assert not column(found, "n").flags.owndata
    assert not column(found, "n").flags.writeable
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["t"]


@pytest.mark.parametrize("chunks", [[], [[]], [[1, 2]], [[1], [2, 3]], [[], [4]]])
def test_column_is_every_chunk_in_its_type(chunks: list[list[int]]) -> None:
    arrays = [pa.array(chunk, pa.uint32()) for chunk in chunks]
    table = pa.table({"n": pa.chunked_array(arrays, pa.uint32())})
    found = column(table, "n")
    assert found.dtype == np.uint32
    assert found.tolist() == list(itertools.chain(*chunks))


def test_column_of_a_slice_is_the_slice(tmp_path: Path) -> None:
    write_table(tmp_path / "t", pa.table({"n": pa.array(range(10), pa.uint64())}))
    assert column(open_table(tmp_path / "t").slice(3, 4), "n").tolist() == [3, 4, 5, 6]


UINT64 = st.one_of(
    st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1])
)


@given(st.lists(UINT64).map(sorted), UINT64, st.one_of(UINT64, st.just(2**64)))
def test_between_is_the_values_of_the_range(values: list[int], low: int, high: int) -> None:
    low, high = sorted((low, high))
    taken = between(np.array(values, np.uint64), low, high)
    assert values[taken] == [value for value in values if low <= value < high]
