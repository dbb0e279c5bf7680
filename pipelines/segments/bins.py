"""The files .bins and .holdout of a segment, for finding documents by order or holdout hash."""

import numpy as np
import pyarrow as pa

from pipelines.segments.segment import NUM_BINS
from shards.range import FULL_RANGE, Range
from shards.storage.remote import AnyPath
from shards.storage.sparse import hash_range
from shards.tables import column, open_table, with_hash_range


def bins_table(order: np.ndarray, lengths: np.ndarray, *, within: Range = FULL_RANGE) -> pa.Table:
    """Return the numbers of documents and tokens before each bin: NUM_BINS + 1 rows.

    Args:
        order: uint64[n], the documents' orders, sorted.
        lengths: int[n], the documents' numbers of tokens.
        within: The range of the orders, one of 2**k equal ranges; it is divided into even bins.
    """
    width = (within.high - within.low) // NUM_BINS
    edges = np.uint64(within.low) + np.arange(NUM_BINS, dtype=np.uint64) * np.uint64(width)
    documents = np.append(np.searchsorted(order, edges), len(order))
    tokens = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))[documents]
    table = pa.table({"documents": documents.astype(np.int64), "tokens": tokens})
    return table if within == FULL_RANGE else with_hash_range(table, within)


def holdout_table(order: np.ndarray, holdout: np.ndarray) -> pa.Table:
    """Return the holdout hashes of documents, sorted, with their rows and orders.

    Args:
        order: uint64[n], the documents' orders, sorted.
        holdout: uint64[n], the documents' holdout hashes.
    """
    rows = np.argsort(holdout, kind="stable").astype(np.uint32)
    return pa.table({"holdout": holdout[rows], "row": rows, "order": order[rows]})


class Bins:
    """The bins of a segment.

    `documents` and `tokens` (int64[NUM_BINS + 1]) are the numbers of documents and tokens before
    each bin and, in the last row, in all bins.
    """

    def __init__(self, path: AnyPath) -> None:
        """Read the bins from a file."""
        table = open_table(path)
        self._within = hash_range(table.schema)
        self.documents = column(table, "documents")
        self.tokens = column(table, "tokens")

    def around(self, within: Range) -> tuple[int, int]:
        """Return the first bin that a range overlaps, and the bin after the last."""
        width = (self._within.high - self._within.low) // NUM_BINS
        common = self._within.intersection(within)
        first, last = (order - self._within.low for order in (common.low, common.high - 1))
        return first // width, last // width + 1
