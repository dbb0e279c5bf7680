"""Tables that are written whole and read in parts: see shards/tables.py."""

from shards.tables import (
    between,
    column,
    lookup,
    map_items,
    open_between,
    open_rows,
    open_table,
    rows_between,
    spread_over,
    write_entry,
    write_table,
)

__all__ = (
    "between",
    "column",
    "lookup",
    "map_items",
    "open_between",
    "open_rows",
    "open_table",
    "rows_between",
    "spread_over",
    "write_entry",
    "write_table",
)
