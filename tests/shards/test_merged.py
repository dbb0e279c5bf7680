from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from shards.merged import OrderedTable
from shards.range import Range


def test_ranges_of_a_table_hold_each_row_once(tmp_path: Path) -> None:
    """Orders are on both edges of each range, and some row groups end within a range."""
    ranges = [Range.of(number, 3) for number in range(3)]
    orders = [order for each in ranges for order in (each.low, each.low + 1, each.high - 1)]
    pq.write_table(
        pa.table({"order": pa.array(orders, pa.uint64())}), tmp_path / "a.parquet", row_group_size=2
    )
    table = OrderedTable(tmp_path / "a.parquet")
    found = [table.rows(within)["order"].to_pylist() for within in ranges]
    assert found == [orders[0:3], orders[3:6], orders[6:9]]
