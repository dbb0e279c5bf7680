"""Tables of several generations as one: by ranges of the order (Parquet) or of a hash (Arrow)."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from shards.manifest import TableEntry
from shards.range import Range, split_range
from shards.storage.files import map_bytes
from shards.storage.remote import AnyPath
from shards.tables import column, spread_over

SIGNATURE_BYTES = 64 << 20
"""What a file of signatures holds at most, unless it would take more than MANY_FILES of them."""

MANY_FILES = 512
"""Instead of more files than this, each holds more, up to MOST_GROWTH times as much."""

MOST_GROWTH = 8


RowsToKeep = Callable[[pa.Table], NDArray[np.bool_]]
"""Says which rows of a table stay, bool[rows]."""


class OrderedTable:
    """A Parquet file that is sorted by `order`, or those rows of it that stay."""

    def __init__(self, path: AnyPath, rows_to_keep: RowsToKeep | None = None) -> None:
        """Take its path, and what says which rows stay."""
        self._path = path
        self._rows_to_keep = rows_to_keep

    @cached_property
    def footer(self) -> pq.FileMetaData:
        """What its end says of it; read once, however many ranges are taken of it."""
        return pq.read_metadata(pa.BufferReader(self._content()))

    def _content(self) -> pa.Buffer:
        return pa.py_buffer(map_bytes(self._path))

    @property
    def bytes(self) -> int:
        """Of its rows, not compressed."""
        groups = range(self.footer.num_row_groups)
        return sum(self.footer.row_group(group).total_byte_size for group in groups)

    def rows(self, within: Range) -> pa.Table:
        """Return the rows of a range of orders; without any the file is not read again."""
        order = self.footer.schema.names.index("order")
        groups = [self.footer.row_group(group) for group in range(self.footer.num_row_groups)]
        found = [group.column(order).statistics for group in groups if group.num_rows]
        if not any(each.min < within.high and each.max >= within.low for each in found):
            return self.footer.schema.to_arrow_schema().empty_table()
        field = pc.field("order")
        low, last = (pa.scalar(edge, pa.uint64()) for edge in (within.low, within.high - 1))
        table = pq.read_table(
            pa.BufferReader(self._content()), filters=(field >= low) & (field <= last)
        )
        return (
            table
            if self._rows_to_keep is None
            else table.filter(pa.array(self._rows_to_keep(table)))
        )


def merged_tables(
    tables: Sequence[OrderedTable], within: Range, *, rows: int
) -> Iterator[pa.Table]:
    """Yield the rows of Parquet files in a range, by order, in parts of bounded size.

    Equal orders keep the order of the files. Files without rows in the range are not opened again.

    Args:
        tables: The files, at least one.
        within: The range of orders.
        rows: How many rows the files have in all.
    """
    held_bytes = sum(table.bytes for table in tables)
    for part in split_range(within, rows=rows, held_bytes=held_bytes):
        found = [table.rows(part) for table in tables]
        merged = pa.concat_tables(found, promote_options="default")
        yield merged.take(np.argsort(column(merged, "order"), kind="stable"))


def num_signature_files(groups: Sequence[Sequence[TableEntry]]) -> int:
    """Return into how many ranges, a power of two, signatures of one kind are cut.

    Args:
        groups: The files of each generation.
    """
    num_bytes = sum(entry.bytes for group in groups for entry in group)
    size = min(max(SIGNATURE_BYTES, -(-num_bytes // MANY_FILES)), MOST_GROWTH * SIGNATURE_BYTES)
    least = max(1, -(-num_bytes // size), *(len(group) for group in groups))
    return 1 << (least - 1).bit_length()


def merged_signatures(tables: Sequence[pa.Table], within: Range) -> pa.Table:
    """Return rows of signature tables in the order of the hash that sorts them.

    Rows with equal hashes are sorted by their further columns of uint64.

    Args:
        tables: The rows of a range of that hash, at least one table.
        within: The range.
    """
    table = pa.concat_tables(tables)
    names = [field.name for field in table.schema if field.type == pa.uint64()]
    ranked = np.lexsort([column(table, name) for name in reversed(names)])
    return spread_over(table.take(ranked), within)
