"""Finds rows of a sorted table by values of its key without reading the whole table."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from shards.range import Range
from shards.storage.arrow import reraise_as_damage
from shards.storage.remote import AnyPath
from shards.storage.sparse import BLOCK_ROWS, SparseTable, sorted_keys
from shards.tables import slice_between

PIECE_BYTES = 2 << 20
"""The number of bytes of a table that are read at once."""


def matching_rows(path: AnyPath, key: str, values: np.ndarray, *, within: Range) -> pa.Table:
    """Return the rows of a table whose key is in `values`; the table is read in pieces.

    Keys are uniformly distributed hashes, so the row of each value is approximately known, and
    only the blocks around these rows are read. If there are many values, every block is read once.

    Args:
        path: A table that write_table wrote.
        key: The column (uint64) that the table is sorted by.
        values: uint64[n], sorted, all different.
        within: The range of the hashes in the table.

    Raises:
        DamageError: The table cannot be used.
    """
    table = SparseTable(path)
    found = [table.read(0, 0)]
    with reraise_as_damage(path):
        for wanted, first, last in _windows(table, key, values, within):
            step = max(1, PIECE_BYTES // table.block_bytes)
            for start in range(first, last, step):
                stop = min(start + step, last)
                found.append(_chosen(table.read(start, stop), key, wanted))
                table.release(start, stop)
    return pa.concat_tables(found).replace_schema_metadata()


def _windows(
    table: SparseTable, key: str, values: np.ndarray, within: Range
) -> Iterator[tuple[np.ndarray, int, int]]:
    """Yield groups of values, each with the start and end of the blocks that may have them."""
    num_blocks = table.num_blocks
    if not num_blocks or not len(values):
        return
    rows = num_blocks * BLOCK_ROWS - BLOCK_ROWS // 2  # the last block is assumed to be half full
    guess = (values - np.uint64(within.low)) / float(within.high - within.low) * rows
    slack = 64 + 2 * rows**0.5
    first = np.clip((guess - slack) // BLOCK_ROWS, 0, num_blocks - 1).astype(np.int64)
    last = np.clip((guess + slack) // BLOCK_ROWS + 1, 1, num_blocks).astype(np.int64)
    cuts = np.flatnonzero(first[1:] >= last[:-1]) + 1
    for start, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), len(values)], strict=True):
        wanted, window = values[start:stop], [int(first[start]), int(last[stop - 1])]
        # The window grows as long as the rows before or after it may have one of the values.
        while window[0] and _keys(table, key, window[0])[0] >= wanted[0]:
            window[0] -= 1
        while window[1] < num_blocks and _keys(table, key, window[1] - 1)[-1] <= wanted[-1]:
            window[1] += 1
        yield wanted, window[0], window[1]


def _keys(table: SparseTable, key: str, block: int) -> np.ndarray:
    return table.keys(block, block + 1, key)


def _chosen(piece: pa.Table, key: str, wanted: np.ndarray) -> pa.Table:
    keys = sorted_keys(piece, key)
    inside = wanted[slice_between(wanted, int(keys[0]), int(keys[-1]) + 1)]
    starts = np.searchsorted(keys, inside, "left")
    lengths = np.searchsorted(keys, inside, "right") - starts
    # For each value that occurs, the numbers of all rows that have the value.
    skipped = np.cumsum(lengths) - lengths
    rows = np.repeat(starts - skipped, lengths) + np.arange(lengths.sum())
    return piece.take(rows)
