"""Near-duplicates: one range of one band in, pairs of documents out.

An item holds the range's rows of all segments, 20 bytes each, and sorts them. Only for rows whose
hash occurs again does it look up slots, in one segment's file after the other, so its memory does
not depend on the size of the corpus, except for documents that share a hash: one item has them all.

Of the documents that share a band's hash, each is paired with the smallest of the corpus. Documents
compare by order, then by the segment's number, then by the signer's.
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
class Members:
    """Documents as pairs name them: `order` uint64[n], `segment` and `signer` uint32[n]."""

    order: np.ndarray
    segment: np.ndarray
    signer: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> "Members":
        return Members(self.order[rows], self.segment[rows], self.signer[rows])

    def __len__(self) -> int:
        return len(self.order)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Documents, each with the smallest document that shares its hash of a band."""

    member: Members
    smallest: Members
    passed: np.ndarray
    """bool[n]: similar enough."""


def read_range(
    paths: Sequence[AnyPath], band: int, *, index: int, ranges: int
) -> tuple[BandRows, np.ndarray]:
    """Return the rows of a range of a band, segment by segment, and where each segment's begin.

    Args:
        paths: The .bands files of all segments.
        band: Number of the band.
        index: Number of the range.
        ranges: How many there are, a power of two, at most EDGES.
    """
    width = EDGES // ranges
    edges = {"first": index * width, "last": (index + 1) * width}
    parts = concurrent_map(lambda path: open_bands(path, band, **edges), paths, where=paths[0])
    starts = np.cumsum([0, *(len(part.hash) for part in parts)])
    num = int(starts[-1])
    rows = BandRows(
        hash=np.empty(num, np.uint64),
        order=np.empty(num, np.uint64),
        signer=np.empty(num, np.uint32),
    )
    parts.reverse()
    for start, stop in itertools.pairwise(starts.tolist()):
        part = parts.pop()  # bytes fetched from a URL are freed as soon as they are copied
        rows.hash[start:stop], rows.order[start:stop] = part.hash, part.order
        rows.signer[start:stop] = part.signer
    return rows, starts


def segments_of(rows: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the segments (uint32[n]) of rows of a range; `starts` as read_range returns it."""
    found: np.ndarray = (np.searchsorted(starts, rows, "right") - 1).astype(np.uint32)
    return found


def members_of(rows: BandRows, starts: np.ndarray, chosen: np.ndarray) -> Members:
    """Return the documents of some rows (int64[n]) of a range."""
    return Members(rows.order[chosen], segments_of(chosen, starts), rows.signer[chosen])


def group_rows(rows: BandRows, *, range_bits: int) -> Iterator[HashGroups]:
    """Yield the rows of a range that share a hash, a block at a time, each group by order.

    Args:
        rows: The rows of the range, as read_range returns them.
        range_bits: Number of leading bits of the hash that the whole range has in common.
    """
    for block in colliding_rows(rows.hash, range_bits=range_bits):
        # Sorting is stable: of equal orders the first row stays first, that of the first segment.
        ranked = block[np.lexsort((rows.order[block], rows.hash[block]))]
        yield HashGroups(ranked, run_starts(rows.hash[ranked]))


def pair_with_smallest(
    rows: BandRows,
    starts: np.ndarray,
    groups: HashGroups,
    *,
    slots: Sequence[AnyPath],
    known: np.ndarray,
    threshold: float,
) -> Iterator[Pairs]:
    """Yield the pairs of groups, at most PAIRS_AT_ONCE at a time.

    Args:
        rows: The rows of the range.
        starts: Where each segment's rows begin.
        groups: Rows that share a hash.
        slots: The .slots files of all segments.
        known: bool[n], the rows whose hash an earlier generation has: they are in no pairs, since
            none of these documents is the smallest with the hash.
        threshold: Least similarity; with 0 a shared band is enough.
    """
    tops = np.flatnonzero(groups.first)
    for start in range(0, len(groups.rows), PAIRS_AT_ONCE):
        part = np.arange(start, min(start + PAIRS_AT_ONCE, len(groups.rows)))
        part = part[~groups.first[part] & ~known[groups.rows[part]]]
        one = members_of(rows, starts, groups.rows[part])
        top = tops[np.searchsorted(tops, part) - 1]
        other = members_of(rows, starts, groups.rows[top])
        passed = np.ones(len(part), bool)
        if threshold:
            both = (
                look_up(slots, "slots", segment=side.segment, signer=side.signer)
                for side in (one, other)
            )
            passed = are_similar(*both, threshold=threshold)
        yield Pairs(one, other, passed)


def look_up(
    slots: Sequence[AnyPath], name: str, *, segment: np.ndarray, signer: np.ndarray
) -> np.ndarray:
    """Return a column of the .slots files for some signers.

    Args:
        slots: The files of all segments, by number.
        name: The column: order, row or slots.
        segment: int[n].
        signer: int[n].
    """
    dtype, shape = _COLUMNS[name]
    values = np.empty((len(signer), *shape), dtype)
    by_segment = np.argsort(segment, kind="stable")
    bounds = np.searchsorted(segment[by_segment], np.arange(len(slots) + 1))

    def read(number: int) -> None:
        rows = by_segment[bounds[number] : bounds[number + 1]]
        values[rows] = read_slots(slots[number], name, signer[rows])

    numbers: list[int] = np.flatnonzero(np.diff(bounds)).tolist()
    if numbers:
        concurrent_map(read, numbers, where=slots[0])
    return values


_COLUMNS: Mapping[str, tuple[type[Any], tuple[int, ...]]] = {
    "order": (np.uint64, ()),
    "row": (np.uint32, ()),
    "slots": (np.uint8, (NUM_SLOTS,)),
}


def near_drops(slots: Sequence[AnyPath], member: Members, *, known: bool = False) -> pa.Table:
    """Return documents as drops.

    Args:
        slots: The .slots files of all segments.
        member: The documents.
        known: Whether they are similar to documents of earlier generations.
    """
    row = look_up(slots, "row", segment=member.segment, signer=member.signer)
    same = np.full(len(row), known)
    return drop_table(member.order, member.segment, row, reason=NEAR, known=same)
