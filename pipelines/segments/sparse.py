"""Files and tables behind a URL, read in parts: see shards/storage/sparse.py."""

from shards.storage.sparse import (
    AT_ONCE,
    BLOCK_ROWS,
    END_BYTES,
    GAP_BYTES,
    SMALL_BYTES,
    MappedFile,
    SparseFile,
    SparseTable,
    copy_rows,
    forget_sizes,
    join_ranges,
    open_bytes,
    side_by_side,
    spread_of,
)

__all__ = (
    "AT_ONCE",
    "BLOCK_ROWS",
    "END_BYTES",
    "GAP_BYTES",
    "SMALL_BYTES",
    "MappedFile",
    "SparseFile",
    "SparseTable",
    "copy_rows",
    "forget_sizes",
    "join_ranges",
    "open_bytes",
    "side_by_side",
    "spread_of",
)
