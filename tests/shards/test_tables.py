import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.segments.rows import NAME
from shards.errors import DamageError
from shards.tables import (
    between,
    column,
    lookup,
    map_items,
    open_between,
    open_rows,
    open_table,
    rows_between,
    write_table,
)


def test_parts_of_a_table_are_read_by_number_and_by_key(tmp_path: Path) -> None:
    keys = np.sort(np.random.default_rng(1).integers(0, 2**64, 10_000, np.uint64))
    whole = pa.table({"order": keys, "n": np.arange(10_000)})
    path = tmp_path / "t"
    write_table(path, whole)
    assert open_table(path).equals(whole)
    assert open_rows(path, slice(4000, 9000)).equals(whole.slice(4000, 5000))
    low, high = int(keys[4095]), int(keys[8193])
    assert rows_between(path, "order", low=low, high=high) == slice(4095, 8193)
    assert open_between(path, "order", low=low, high=high).equals(whole.slice(4095, 4098))
    assert open_between(path, "order", low=0, high=2**64).equals(whole)
    assert lookup(path, "order", keys[[9000, 3]])["n"].to_pylist() == [9000, 3]


def test_runs_of_items_are_mapped(tmp_path: Path) -> None:
    items = np.arange(1000, dtype="<u2")
    (tmp_path / "tokens").write_bytes(items.tobytes())
    runs = {"starts": np.array([7, 990]), "lengths": np.array([3, 10])}
    data = map_items(tmp_path / "tokens", **runs, size=len(items))
    assert data.view("<u2").tolist() == items.tolist()
    assert not data.flags.owndata


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


def test_an_empty_table_keeps_its_columns(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.uint64()), ("s", NAME)])
    write_table(tmp_path / "t", schema.empty_table())
    found = open_table(tmp_path / "t")
    assert found.schema == schema
    assert column(found, "n").dtype == np.uint64


def test_a_missing_table_is_named_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(DamageError, match=f"{tmp_path}/t is missing"):
        open_table(tmp_path / "t")


UINT64 = st.one_of(
    st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1])
)


@given(st.lists(UINT64).map(sorted), UINT64, st.one_of(UINT64, st.just(2**64)))
def test_between_is_the_values_of_the_range(values: list[int], low: int, high: int) -> None:
    low, high = sorted((low, high))
    taken = between(np.array(values, np.uint64), low, high)
    assert values[taken] == [value for value in values if low <= value < high]
