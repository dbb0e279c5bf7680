from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shards import merged_tables as module
from shards.merged_tables import OrderedTable, merged_tables
from shards.range import Range


def test_a_file_without_rows_in_a_range_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, opened = [], []
    for index in range(4):
        path = tmp_path / f"{index}.parquet"
        order = pa.array([index << 62, (index << 62) + 5], pa.uint64())
        pq.write_table(pa.table({"order": order}), path)
        tables.append(OrderedTable(path))
    map_bytes = module.map_bytes
    monkeypatch.setattr(module, "map_bytes", lambda path: opened.append(path) or map_bytes(path))
    for index in range(4):
        parts = merged_tables(tables, Range.of(index, 4), rows=8)
        found = pa.concat_tables(parts)["order"].to_pylist()
        assert found == [index << 62, (index << 62) + 5]
    assert len(opened) == 4 + 4
