"""Finds pairs of near-duplicates in one range of the hash of one band.

An item holds the range's rows of all segments, 20 bytes each, and sorts them. It looks up slots
only for rows whose hash occurs more than once, segment by segment. So an item's memory does not
depend on the size of the corpus, except that one item holds all documents that share a hash.

Each document is paired with the smallest document of the corpus that shares its hash of the band.
Documents are compared by order, then by the segment's number, then by their row in .slots.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import (
    EDGES,
    PAIRS_AT_ONCE,
    BandRows,
    are_similar,
    open_bands,
    read_slots,
)
from pipelines.dedup.drops import NEAR, drop_table
from pipelines.dedup.exact import HashGroups, colliding_rows, run_starts
from pipelines.dedup.minhash import NUM_SLOTS
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map


@dataclass(frozen=True, slots=True)
class DocumentRefs:
    """References to documents: `order` uint64[n], `segment` and `slot_row` uint32[n]."""

    order: np.ndarray
    segment: np.ndarray
    slot_row: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> "DocumentRefs":
        return DocumentRefs(self.order[rows], self.segment[rows], self.slot_row[rows])

    def __len__(self) -> int:
        return len(self.order)


@dataclass(frozen=True, slots=True)
class CandidatePairs:
    """Documents, each with the smallest document that shares its hash of a band."""

    document: DocumentRefs
    smallest: DocumentRefs
    passed: np.ndarray
    """bool[n]: whether the two documents of each pair are similar enough."""


def read_range(
    paths: Sequence[AnyPath], band: int, *, index: int, ranges: int
) -> tuple[BandRows, np.ndarray]:
    """Return the rows of a range of a band, and the place where each segment's rows begin.

    Args:
        paths: The .bands files of all segments.
        band: The number of the band.
        index: The number of the range.
        ranges: The number of ranges, a power of two, at most EDGES.
    """
    width = EDGES // ranges
    edges = {"first": index * width, "last": (index + 1) * width}
    parts = concurrent_map(lambda path: open_bands(path, band, **edges), paths, where=paths[0])
    starts = np.cumsum([0, *(len(part.hash) for part in parts)])
    num = int(starts[-1])
    rows = BandRows(
        hash=np.empty(num, np.uint64),
        order=np.empty(num, np.uint64),
        slot_row=np.empty(num, np.uint32),
    )
    parts.reverse()
    for start, stop in itertools.pairwise(starts.tolist()):
        part = parts.pop()  # bytes fetched from a URL are freed as soon as they are copied
        rows.hash[start:stop], rows.order[start:stop] = part.hash, part.order
        rows.slot_row[start:stop] = part.slot_row
    return rows, starts


def segments_of(rows: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the segment numbers (uint32[n]) of rows; `starts` is as read_range returns it."""
    found: np.ndarray = (np.searchsorted(starts, rows, "right") - 1).astype(np.uint32)
    return found


def refs_of(rows: BandRows, starts: np.ndarray, chosen: np.ndarray) -> DocumentRefs:
    """Return references to the documents of chosen rows (int64[n]) of a range."""
    return DocumentRefs(rows.order[chosen], segments_of(chosen, starts), rows.slot_row[chosen])


def group_rows(rows: BandRows, *, range_bits: int) -> Iterator[HashGroups]:
    """Yield blocks of groups of a range's rows that share a hash; each group is sorted by order.

    Args:
        rows: The rows of the range, as read_range returns them.
        range_bits: The number of leading bits of the hash that are equal in the whole range.
    """
    for block in colliding_rows(rows.hash, range_bits=range_bits):
        # The sort is stable, so among equal orders the row of the first segment stays first.
        ranked = block[np.lexsort((rows.order[block], rows.hash[block]))]
        yield HashGroups(ranked, run_starts(rows.hash[ranked]))


def pair_with_smallest(
    rows: BandRows,
    starts: np.ndarray,
    groups: HashGroups,
    *,
    slots: Sequence[AnyPath],
    seen: np.ndarray,
    threshold: float,
) -> Iterator[CandidatePairs]:
    """Yield the candidate pairs of groups, at most PAIRS_AT_ONCE at a time.

    Args:
        rows: The rows of the range.
        starts: The places where each segment's rows begin.
        groups: Rows that share a hash.
        slots: The .slots files of all segments.
        seen: bool[n], whether an earlier generation has a row's hash. Such rows are in no pair,
            because the smallest document with the hash is in that generation.
        threshold: The minimum similarity; if it is 0, sharing a band is enough.
    """
    tops = np.flatnonzero(groups.first)
    for start in range(0, len(groups.rows), PAIRS_AT_ONCE):
        part = np.arange(start, min(start + PAIRS_AT_ONCE, len(groups.rows)))
        part = part[~groups.first[part] & ~seen[groups.rows[part]]]
        document = refs_of(rows, starts, groups.rows[part])
        top = tops[np.searchsorted(tops, part) - 1]
        smallest = refs_of(rows, starts, groups.rows[top])
        passed = np.ones(len(part), bool)
        if threshold:
            both = (
                look_up(slots, "slots", segment=side.segment, slot_row=side.slot_row)
                for side in (document, smallest)
            )
            passed = are_similar(*both, threshold=threshold)
        yield CandidatePairs(document, smallest, passed)


def look_up(
    slots: Sequence[AnyPath], name: str, *, segment: np.ndarray, slot_row: np.ndarray
) -> np.ndarray:
    """Return the values of a column of the .slots files for some documents.

    Args:
        slots: The .slots files of all segments, by number.
        name: The column: order, row or slots.
        segment: int[n], the numbers of the documents' segments.
        slot_row: int[n], the documents' rows in .slots.
    """
    dtype, shape = _COLUMNS[name]
    values = np.empty((len(slot_row), *shape), dtype)
    by_segment = np.argsort(segment, kind="stable")
    bounds = np.searchsorted(segment[by_segment], np.arange(len(slots) + 1))

    def read(number: int) -> None:
        rows = by_segment[bounds[number] : bounds[number + 1]]
        values[rows] = read_slots(slots[number], name, slot_row[rows])

    numbers: list[int] = np.flatnonzero(np.diff(bounds)).tolist()
    if numbers:
        concurrent_map(read, numbers, where=slots[0])
    return values


_COLUMNS: Mapping[str, tuple[type[Any], tuple[int, ...]]] = {
    "order": (np.uint64, ()),
    "row": (np.uint32, ()),
    "slots": (np.uint8, (NUM_SLOTS,)),
}


def near_drops(
    slots: Sequence[AnyPath], documents: DocumentRefs, *, seen_before: bool = False
) -> pa.Table:
    """Return documents as a table of DROPS with the reason NEAR.

    Args:
        slots: The .slots files of all segments.
        documents: The documents.
        seen_before: Whether the documents are similar to documents of earlier generations.
    """
    row = look_up(slots, "row", segment=documents.segment, slot_row=documents.slot_row)
    return drop_table(
        documents.order,
        documents.segment,
        row,
        reason=NEAR,
        seen_before=np.full(len(row), seen_before),
    )
