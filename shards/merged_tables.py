"""Tables of several generations as one: by ranges of the order (Parquet) or of a hash (Arrow)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
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


Spared = Callable[[pa.Table], NDArray[np.bool_]]
"""Says which rows of a table stay, bool[rows]."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What the end of a Parquet file says of it."""

    schema: pa.Schema
    spans: Mapping[int, tuple[int, int]]
    """Least and largest order of each row group that has rows."""
    bytes: int
    """Of its rows, not compressed."""

    @classmethod
    def of(cls, file: pq.ParquetFile) -> "Outline":
        """Return that of an open file."""
        number = file.schema_arrow.get_field_index("order")
        groups = [file.metadata.row_group(group) for group in range(file.num_row_groups)]
        statistics = {
            index: group.column(number).statistics
            for index, group in enumerate(groups)
            if group.num_rows
        }
        return cls(
            schema=file.schema_arrow,
            spans={index: (found.min, found.max) for index, found in statistics.items()},
            bytes=sum(group.total_byte_size for group in groups),
        )

    def groups(self, within: Range) -> list[int]:
        """Return the row groups that may have rows of a range of orders."""
        return [
            index
            for index, (low, high) in self.spans.items()
            if low < within.high and high >= within.low
        ]


class OrderedTable:
    """A Parquet file that is sorted by `order`, or those rows of it that stay."""

    def __init__(self, path: AnyPath, spared: Spared | None = None) -> None:
        """Take its path, and what says which rows stay."""
        self._path = path
        self._spared = spared

    @cached_property
    def outline(self) -> Outline:
        """What it is like; read once, however many ranges are taken of it."""
        with self.open() as file:
            return Outline.of(file)

    def open(self) -> pq.ParquetFile:
        """Map it, or fetch it from its URL."""
        return pq.ParquetFile(pa.py_buffer(map_bytes(self._path)))

    def rows(self, file: pq.ParquetFile, within: Range) -> pa.Table:
        """Return the rows of a range of orders; `file` is what `open` returned."""
        table = file.read_row_groups(self.outline.groups(within))
        order = column(table, "order")
        inside = (order >= np.uint64(within.low)) & (order <= np.uint64(within.high - 1))
        table = table.filter(pa.array(inside))
        return table if self._spared is None else table.filter(pa.array(self._spared(table)))


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
    schema = pa.unify_schemas([table.outline.schema for table in tables])
    held_bytes = sum(table.outline.bytes for table in tables)
    opened = [(table, table.open()) for table in tables if table.outline.groups(within)]
    for part in split_range(within, rows=rows, held_bytes=held_bytes):
        found = [schema.empty_table(), *(table.rows(file, part) for table, file in opened)]
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
