"""Exact deduplication by ranges of the hash: sorted hashes of all segments in, lists of drops out.

A task reads its range of every segment's hashes (a contiguous slice of each), so memory is one
range, whatever the corpus. Of the documents that share a hash the one with the smallest order
stays.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

SIGNATURES = pa.schema(
    [("hash_high", pa.uint64()), ("hash_low", pa.uint64()), ("order", pa.uint64())]
)
"""Every distinct hash that reached dedup with the smallest order behind it, sorted by hash."""

ROWS_PER_TASK = 2_000_000
"""Text hashes that a task takes at most: some 0.1 GB above the size of an idle worker."""

MANY_RANGES = 512
"""Where there would be more ranges, tasks take more rows instead, up to MOST_GROWTH times as many:
every task opens a file of every segment."""

MOST_GROWTH = 8

BLOCK_ROWS = 1 << 17
"""Rows that are looked at together once a range is sorted."""

MOST_COPIES = 128
"""Copies within a segment are counted up to here, in a byte: SIZES ends before."""

SIZES = {"2": 2, "3": 3, "4": 4, "5-9": 5, "10-99": 10, "100+": 100}
"""How groups of documents are counted: by name, the least size."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Columns of equal length: the documents whose hash lies in one range.

    `high`, `low` (the 128-bit hash) and `order` are uint64, `segment` and `row` uint32; `copies`
    (uint8) is how many documents of the segment have the text, at most MOST_COPIES.
    """

    high: np.ndarray
    low: np.ndarray
    order: np.ndarray
    segment: np.ndarray
    row: np.ndarray
    copies: np.ndarray

    @classmethod
    def empty(cls, num: int) -> "Candidates":
        """Return columns of a length, to be filled."""
        return cls(
            high=np.empty(num, np.uint64),
            low=np.empty(num, np.uint64),
            order=np.empty(num, np.uint64),
            segment=np.empty(num, np.uint32),
            row=np.empty(num, np.uint32),
            copies=np.empty(num, np.uint8),
        )


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of groups of two or more that have a hash in common.

    `rows` (int64[n]) stand group by group, the one that stays first; `first` (bool[n]) marks it.
    """

    rows: np.ndarray
    first: np.ndarray


def fold(text: str) -> str:
    """Return a text in which every run of white space is one space and the ends have none.

    What deduplication calls the same text is the same in this form.
    """
    return " ".join(text.split())


def text_hashes(folded: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the high and low halves (uint64) of the hash of each folded text: BLAKE2b of UTF-8."""
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=16).digest() for text in folded)
    halves = np.frombuffer(digests, dtype="<u8").reshape(-1, 2)
    return halves[:, 0].copy(), halves[:, 1].copy()


def num_ranges(num_rows: int, *, rows_per_task: int = 0) -> int:
    """Return the power of two of ranges that keeps a task within so many rows.

    Of more than MOST_RANGES there are fewer, with up to sixteen times as many rows: every file of
    a step is opened once for each range of the next, and a dataset names a file for each.

    Args:
        num_rows: Rows in all.
        rows_per_task: Most rows of a task where MANY_RANGES are enough; 0 for ROWS_PER_TASK.
    """
    least = rows_per_task or ROWS_PER_TASK
    rows = min(max(least, -(-num_rows // MANY_RANGES)), MOST_GROWTH * least)
    return 1 << max(0, (max(num_rows, 1) - 1) // rows).bit_length()


def alike(hashes: np.ndarray, *, range_bits: int) -> Iterator[np.ndarray]:
    """Yield the rows (int64) whose hash another row may have, in blocks; equal hashes are together.

    Sorting uint64 in place is several times faster than sorting rows: the bits of the hash that
    differ within a range are sorted with a running index in the low bits, and only neighbours that
    agree above the index are handed on, to be compared in full.

    Args:
        hashes: uint64[n].
        range_bits: Number of leading bits that the whole range has in common.
    """
    index_bits = max(1, len(hashes).bit_length())
    low_mask = np.uint64((1 << index_bits) - 1)
    keys = hashes << np.uint64(range_bits)
    keys &= ~low_mask
    # Whole columns are the memory of a task: temporaries are of a block.
    for start in range(0, len(keys), BLOCK_ROWS):
        part = keys[start : start + BLOCK_ROWS]
        part |= np.arange(start, start + len(part), dtype=np.uint64)
    keys.sort()
    among = np.zeros(len(keys), bool)
    for start in range(0, len(keys), BLOCK_ROWS):
        part = keys[start : start + BLOCK_ROWS + 1]
        same = (part[1:] ^ part[:-1]) <= low_mask
        among[start + 1 : start + len(part)] |= same
        among[start : start + len(part) - 1] |= same
    keys = keys[among]
    at = 0
    while at < len(keys):
        last = keys[min(at + BLOCK_ROWS, len(keys)) - 1] | low_mask
        end = int(np.searchsorted(keys, last, "right"))
        yield (keys[at:end] & low_mask).astype(np.int64)
        at = end


def groups(found: Candidates, *, range_bits: int) -> Iterator[Group]:
    """Yield the documents that share a hash, those with the smallest order first.

    Args:
        found: The documents of the range.
        range_bits: Number of leading bits of `high` that the whole range has in common.
    """
    for rows in alike(found.high, range_bits=range_bits):
        by = [found.row, found.segment, found.order, found.low, found.high]
        ranked = rows[np.lexsort([column[rows] for column in by])]
        high, low = found.high[ranked], found.low[ranked]
        first = np.ones(len(ranked), bool)
        first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
        yield Group(ranked, first)


def duplicates(num: int, found: Iterable[Group]) -> np.ndarray:
    """Return the mask (bool[num]) of the rows that go: all but the first of each group."""
    mask = np.zeros(num, bool)
    for group in found:
        mask[group.rows[~group.first]] = True
    return mask


def group_sizes(copies: np.ndarray, found: Iterable[Group]) -> dict[str, int]:
    """Return how many groups there are by size, as SIZES names them.

    Args:
        copies: uint8[n], how many documents each row stands for.
        found: The groups of rows; a row in none of them is one by itself.
    """
    alone = copies > 1
    sizes = []
    for group in found:
        alone[group.rows] = False
        if len(group.rows):
            counts = copies[group.rows].astype(np.int64)
            sizes.append(np.add.reduceat(counts, np.flatnonzero(group.first)))
    return histogram(np.concatenate([copies[alone].astype(np.int64), *sizes]))


def histogram(sizes: np.ndarray) -> dict[str, int]:
    """Return how many groups have so many documents, as SIZES names them; those of one are left."""
    edges = [*SIZES.values(), 2**63 - 1]
    return dict(zip(SIZES, np.histogram(sizes, np.array(edges))[0].tolist(), strict=True))


def signature_table(found: Candidates, mask: np.ndarray) -> pa.Table:
    """Return the distinct hashes of the range, those of the documents not masked, as SIGNATURES."""
    rows = np.flatnonzero(~mask)
    rows = rows[np.lexsort((found.low[rows], found.high[rows]))]
    return pa.table([found.high[rows], found.low[rows], found.order[rows]], schema=SIGNATURES)
