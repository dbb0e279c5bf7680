"""Exact deduplication by ranges of the hash: sorted hashes of all segments in, lists of drops out.

A task reads its range of every segment's hashes (a contiguous slice of each), so memory is one
range, whatever the corpus. Of the documents that share a hash the one with the smallest order
stays.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

DROPS = pa.schema([("order", pa.uint64()), ("segment", pa.uint32()), ("row", pa.uint32())])
"""A drop file: the documents that go, by segment number and row, sorted by order."""

SIGNATURES = pa.schema(
    [("hash_high", pa.uint64()), ("hash_low", pa.uint64()), ("order", pa.uint64())]
)
"""Every distinct hash that reached dedup with the smallest order behind it, sorted by hash."""

ROWS_PER_TASK = 8_000_000
"""Rows that a task takes at most: about 0.5 GB."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns of equal length: the documents whose hash lies in one range.

    `high`, `low` (the 128-bit hash) and `order` are uint64, `segment` and `row` uint32.
    """

    high: np.ndarray
    low: np.ndarray
    order: np.ndarray
    segment: np.ndarray
    row: np.ndarray

    @classmethod
    def concatenate(cls, parts: Sequence["Candidates"]) -> "Candidates":
        """Return the rows of all parts."""
        return cls(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("high", "low", "order", "segment", "row")
            )
        )


def text_hashes(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the high and low halves (uint64) of each text's hash, white space folded.

    BLAKE2b of the UTF-8 text in which every run of white space is one space and the ends have none.
    """
    digests = b"".join(
        hashlib.blake2b(" ".join(text.split()).encode(), digest_size=16).digest() for text in texts
    )
    halves = np.frombuffer(digests, dtype="<u8").reshape(-1, 2)
    return halves[:, 0].copy(), halves[:, 1].copy()


def num_ranges(num_rows: int) -> int:
    """Return the power of two of hash ranges that keeps a task within ROWS_PER_TASK."""
    return 1 << max(0, (max(num_rows, 1) - 1) // ROWS_PER_TASK).bit_length()


def duplicates(found: Candidates, *, range_bits: int) -> np.ndarray:
    """Return the mask (bool[n]) of the documents that a smaller order with the same hash outlives.

    Sorting uint64 in place is several times faster than sorting rows: the bits of the hash that
    differ within a range are sorted with a running index in the low bits, and only neighbours that
    agree above the index are compared in full.

    Args:
        found: The documents of the range.
        range_bits: Number of leading bits of `high` that the whole range has in common.
    """
    mask = np.zeros(len(found.high), bool)
    index_bits = max(1, len(mask).bit_length())
    low_mask = np.uint64((1 << index_bits) - 1)
    keys = (found.high << np.uint64(range_bits)) & ~low_mask
    keys |= np.arange(len(keys), dtype=np.uint64)
    keys.sort()
    prefixes = keys & ~low_mask
    same = prefixes[1:] == prefixes[:-1]
    alike = np.zeros(len(keys), bool)
    alike[1:] |= same
    alike[:-1] |= same
    rows = (keys[alike] & low_mask).astype(np.int64)
    by = [found.row, found.segment, found.order, found.low, found.high]
    rows = rows[np.lexsort([column[rows] for column in by])]
    high, low = found.high[rows], found.low[rows]
    mask[rows[1:][(high[1:] == high[:-1]) & (low[1:] == low[:-1])]] = True
    return mask


def drop_table(found: Candidates, mask: np.ndarray) -> pa.Table:
    """Return the masked documents as a table of DROPS."""
    rows = np.flatnonzero(mask)
    rows = rows[np.lexsort((found.row[rows], found.segment[rows], found.order[rows]))]
    return pa.table([found.order[rows], found.segment[rows], found.row[rows]], schema=DROPS)


def signature_table(found: Candidates, mask: np.ndarray) -> pa.Table:
    """Return the distinct hashes of the range, those of the documents not masked, as SIGNATURES."""
    rows = np.flatnonzero(~mask)
    rows = rows[np.lexsort((found.low[rows], found.high[rows]))]
    return pa.table([found.high[rows], found.low[rows], found.order[rows]], schema=SIGNATURES)
