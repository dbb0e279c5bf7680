"""Exact deduplication by ranges of the hash, which turns sorted hashes of all segments into drops.

An item reads one range of the hashes, which is a contiguous slice of each segment's file. So an
item needs memory for only one range, however large the corpus is. Among the documents that share a
hash, the document with the smallest order is kept.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.dedup import kernels
from pipelines.segments.rows import utf8
from shards.range import Range
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map
from shards.tables import column, open_between
from shards.text_hash import digest, split_halves

SIGNATURES = pa.schema(
    [("hash_high", pa.uint64()), ("hash_low", pa.uint64()), ("order", pa.uint64())]
)
"""The columns of a signature table, which has a generation's new hashes, sorted, each with the
smallest order of its documents."""

ROWS_PER_ITEM = 2_000_000
"""The number of text hashes per item, which take about 0.1 GB more than an idle worker needs."""

MANY_RANGES = 512
"""The number of ranges above which items take more rows instead, up to MAX_GROWTH times as many,
because every item opens a file of every segment. The memory of an item grows with its rows."""

MAX_GROWTH = 8

BLOCK_ROWS = 1 << 17
"""The number of rows of a sorted range that are processed at once."""

MAX_COPIES = 128
"""The number up to which copies within a segment are counted; it fits in a byte and exceeds all
SIZES."""

SIZES = {"2": 2, "3": 3, "4": 4, "5-9": 5, "10-99": 10, "100+": 100}
"""The smallest size of each bin for the sizes of groups, by the name of the bin."""


@dataclass(frozen=True, slots=True)
class HashedDocuments:
    """The documents of all segments whose hash is in one range, as columns of equal length.

    `high`, `low` (the 128-bit hash) and `order` are uint64, `segment` and `row` uint32; `copies`
    (uint8) is the number of documents of the segment that have the text, at most MAX_COPIES.
    """

    high: np.ndarray
    low: np.ndarray
    order: np.ndarray
    segment: np.ndarray
    row: np.ndarray
    copies: np.ndarray

    @classmethod
    def empty(cls, num: int) -> "HashedDocuments":
        """Return uninitialized columns of length `num`."""
        return cls(
            high=np.empty(num, np.uint64),
            low=np.empty(num, np.uint64),
            order=np.empty(num, np.uint64),
            segment=np.empty(num, np.uint32),
            row=np.empty(num, np.uint32),
            copies=np.empty(num, np.uint8),
        )


@dataclass(frozen=True, slots=True)
class HashGroups:
    """Groups of rows that share a hash; a group may have only one row.

    `rows` (int64[n]) are sorted by group. The first row of each group, marked by `first` (bool[n]),
    is the document to keep.
    """

    rows: np.ndarray
    first: np.ndarray


@dataclass(frozen=True, slots=True)
class FoldedTexts:
    """Folded texts, concatenated as UTF-8."""

    data: np.ndarray
    """The bytes of all texts, uint8[m]."""
    ends: np.ndarray
    """The place where each text ends, int64[n]."""

    def hashes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the high and low halves (uint64) of the BLAKE2b of each text's UTF-8."""
        view = memoryview(self.data)  # type: ignore[arg-type] # an array is a buffer
        edges = itertools.pairwise([0, *self.ends.tolist()])
        return split_halves([digest(view[start:end]) for start, end in edges])


def fold_column(texts: pa.Array) -> FoldedTexts:
    """Return the texts of a column of large_string without nulls, folded as fold() folds them."""
    data, offsets = utf8(texts)
    folded = np.empty(offsets[-1] - offsets[0] + 1, np.uint8)
    ends = np.empty(len(texts), np.int64)
    kernels.fold(data, offsets, kernels.KINDS, folded, ends)
    return FoldedTexts(folded, ends)


def run_starts(*columns: np.ndarray) -> np.ndarray:
    """Return the mask (bool[n]) of the first row, and of the rows that differ from the row before.

    Args:
        columns: At least one column, of n rows each.
    """
    first = np.ones(len(columns[0]), bool)
    first[1:] = False
    for values in columns:
        first[1:] |= values[1:] != values[:-1]
    return first


def num_ranges(num_rows: int, *, rows_per_item: int = 0, many: int = MANY_RANGES) -> int:
    """Return the number of ranges, a power of two, that keeps each item within its maximum of rows.

    If this would be more than `many` ranges, items take up to MAX_GROWTH times as many rows
    instead, because each range opens every file of the previous stage, and adds a file to the
    dataset.

    Args:
        num_rows: The number of rows of all items together.
        rows_per_item: The maximum number of rows per item if `many` ranges suffice; 0 for
            ROWS_PER_ITEM.
        many: The number of ranges above which items take more rows.
    """
    least = rows_per_item or ROWS_PER_ITEM
    rows = min(max(least, -(-num_rows // many)), MAX_GROWTH * least)
    return 1 << max(0, (max(num_rows, 1) - 1) // rows).bit_length()


def read_hashes(paths: Sequence[AnyPath], within: Range) -> HashedDocuments:
    """Return the documents of a range from the .hashes files of all segments."""
    parts = concurrent_map(
        lambda path: open_between(path, "hash_high", low=within.low, high=within.high),
        paths,
        where=paths[0],
    )
    ends = np.cumsum([len(part) for part in parts]).tolist()
    found = HashedDocuments.empty(ends[-1])
    parts.reverse()
    for number, end in enumerate(ends):
        part = parts.pop()  # bytes fetched from a URL are freed as soon as they are copied
        rows = slice(end - len(part), end)
        found.high[rows], found.low[rows] = column(part, "hash_high"), column(part, "hash_low")
        for name in ("order", "row", "copies"):
            getattr(found, name)[rows] = column(part, name)
        found.segment[rows] = number
    return found


def colliding_rows(hashes: np.ndarray, *, range_bits: int) -> Iterator[np.ndarray]:
    """Yield blocks of rows (int64) whose hash may occur more than once; equal hashes share a block.

    Sorting uint64 in place is several times faster than sorting rows. So the bits of the hash that
    differ within the range are sorted with the row number in the low bits, and only neighbours that
    agree above the row number are yielded; the caller compares their whole hashes.

    Args:
        hashes: The hash of each row, uint64[n].
        range_bits: The number of leading bits that are equal in the whole range.
    """
    index_bits = max(1, len(hashes).bit_length())
    low_mask = np.uint64((1 << index_bits) - 1)
    keys = hashes << np.uint64(range_bits)
    keys &= ~low_mask
    # Temporary arrays have the length of a block, so that they add little to the item's memory.
    for start in range(0, len(keys), BLOCK_ROWS):
        part = keys[start : start + BLOCK_ROWS]
        part |= np.arange(start, start + len(part), dtype=np.uint64)
    keys.sort()
    collides = np.zeros(len(keys), bool)
    for start in range(0, len(keys), BLOCK_ROWS):
        part = keys[start : start + BLOCK_ROWS + 1]
        same = (part[1:] ^ part[:-1]) <= low_mask
        collides[start + 1 : start + len(part)] |= same
        collides[start : start + len(part) - 1] |= same
    keys = keys[collides]
    start = 0
    while start < len(keys):
        last = keys[min(start + BLOCK_ROWS, len(keys)) - 1] | low_mask
        stop = int(np.searchsorted(keys, last, "right"))
        yield (keys[start:stop] & low_mask).astype(np.int64)
        start = stop


def group_by_hash(documents: HashedDocuments, *, range_bits: int) -> Iterator[HashGroups]:
    """Yield blocks of groups of documents that share a hash; each group is sorted by order.

    Args:
        documents: The documents of the range.
        range_bits: The number of leading bits of `high` that are equal in the whole range.
    """
    keys = (documents.row, documents.segment, documents.order, documents.low, documents.high)
    for rows in colliding_rows(documents.high, range_bits=range_bits):
        ranked = rows[np.lexsort([key[rows] for key in keys])]
        high, low = documents.high[ranked], documents.low[ranked]
        yield HashGroups(ranked, run_starts(high, low))


def duplicate_mask(num: int, blocks: Iterable[HashGroups]) -> np.ndarray:
    """Return the mask (bool[num]) of the rows to drop: all but the first of each group."""
    mask = np.zeros(num, bool)
    for groups in blocks:
        mask[groups.rows[~groups.first]] = True
    return mask


def group_sizes(copies: np.ndarray, blocks: Iterable[HashGroups]) -> dict[str, int]:
    """Return the number of groups by size, as named in SIZES.

    Args:
        copies: uint8[n], the number of documents that each row represents.
        blocks: The groups of rows; a row that is not in a block is a group by itself.
    """
    alone = copies > 1
    sizes = []
    for groups in blocks:
        alone[groups.rows] = False
        if len(groups.rows):
            counts = copies[groups.rows].astype(np.int64)
            sizes.append(np.add.reduceat(counts, np.flatnonzero(groups.first)))
    return size_histogram(np.concatenate([copies[alone].astype(np.int64), *sizes]))


def size_histogram(sizes: np.ndarray) -> dict[str, int]:
    """Return the number of groups of two or more documents by size, as named in SIZES."""
    edges = [*SIZES.values(), 2**63 - 1]
    return dict(zip(SIZES, np.histogram(sizes, np.array(edges))[0].tolist(), strict=True))


def signature_table(documents: HashedDocuments, mask: np.ndarray) -> pa.Table:
    """Return a table of SIGNATURES with the hashes of the documents that are not in the mask."""
    rows = np.flatnonzero(~mask)
    high, low = documents.high[rows], documents.low[rows]
    ranked = np.lexsort((low, high))
    columns = [high[ranked], low[ranked], documents.order[rows[ranked]]]
    return pa.table(columns, schema=SIGNATURES)
