"""Near-duplicates across segments: one range of one band in, pairs of documents out.

A task holds the range's rows of all segments, 21 bytes each, and sorts them. Only for rows whose
hash occurs again does it look up slots, in one segment's file after the other, so its memory does
not depend on the size of the corpus.

Of the documents that share a band's hash, each is paired with the smallest. Documents compare by
order, then by the segment's number, then by the signer's.
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
    OrderedRows,
    are_similar,
    open_bands,
    read_slots,
)
from pipelines.dedup.components import Edges
from pipelines.dedup.drops import NEAR, NO_ROW, drop_table
from pipelines.dedup.exact import HashGroups, colliding_rows
from pipelines.dedup.minhash import NUM_SLOTS
from pipelines.dedup.runs import run_starts, start_rows
from shards.range import Range
from shards.storage.remote import AnyPath
from shards.storage.sparse import side_by_side
from shards.tables import between, column, open_table

ALL = 1 << 32
"""The share that is_linked takes for every document."""


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
    groups: HashGroups
    """The groups that the pairs come from, as rows of the range."""


def read_range(
    paths: Sequence[AnyPath], band: int, *, index: int, ranges: int
) -> tuple[OrderedRows, np.ndarray]:
    """Return the rows of a range of a band, segment by segment, and where each segment's begin.

    Args:
        paths: The .bands files of all segments.
        band: Number of the band.
        index: Number of the range.
        ranges: How many there are, a power of two, at most EDGES.
    """
    width = EDGES // ranges
    edges = {"first": index * width, "last": (index + 1) * width}
    parts = side_by_side(lambda path: open_bands(path, band, **edges), paths, where=paths[0])
    starts = np.cumsum([0, *(len(part.hash) for part in parts)])
    num = int(starts[-1])
    rows = OrderedRows(
        hash=np.empty(num, np.uint64),
        signer=np.empty(num, np.uint32),
        copies=np.empty(num, np.uint8),
        order=np.empty(num, np.uint64),
    )
    parts.reverse()
    for start, stop in itertools.pairwise(starts.tolist()):
        part = parts.pop()  # what was fetched from a URL is freed as soon as it is copied
        rows.hash[start:stop], rows.signer[start:stop] = part.hash, part.signer
        rows.copies[start:stop], rows.order[start:stop] = part.copies, part.order
    return rows, starts


def segments_of(rows: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the segments (uint32[n]) of rows of a range; `starts` as read_range returns it."""
    found: np.ndarray = (np.searchsorted(starts, rows, "right") - 1).astype(np.uint32)
    return found


def pair_with_smallest(
    rows: OrderedRows,
    starts: np.ndarray,
    *,
    slots: Sequence[AnyPath],
    known: np.ndarray,
    range_bits: int,
    threshold: float,
) -> Iterator[Pairs]:
    """Yield the pairs of a range, a block of groups at a time.

    Args:
        rows: The rows of the range.
        starts: Where each segment's rows begin.
        slots: The .slots files of all segments.
        known: bool[n], the rows whose hash an earlier generation has: they are in groups, and in no
            pairs, since none of these documents is the smallest with the hash.
        range_bits: Number of leading bits of the hash that the whole range has in common.
        threshold: Least similarity; with 0 a shared band is enough.
    """
    for block in colliding_rows(rows.hash, range_bits=range_bits):
        segment = segments_of(block, starts)
        signer, order, hashes = rows.signer[block], rows.order[block], rows.hash[block]
        ranked = np.lexsort((signer, segment, order, hashes))
        first = run_starts(hashes[ranked])
        members = Members(order[ranked], segment[ranked], signer[ranked])
        paired = ~first & ~known[block[ranked]]
        one, other = members[paired], members[start_rows(first)[paired]]
        passed = _passed(slots, one, other, threshold=threshold)
        yield Pairs(one, other, passed, HashGroups(block[ranked], first))


def _passed(
    slots: Sequence[AnyPath], one: Members, other: Members, *, threshold: float
) -> np.ndarray:
    passed = np.ones(len(one), bool)
    if not threshold:
        return passed
    for start in range(0, len(one), PAIRS_AT_ONCE):
        part = np.arange(start, min(start + PAIRS_AT_ONCE, len(one)))
        both = [
            look_up(slots, "slots", segment=side[part].segment, signer=side[part].signer)
            for side in (one, other)
        ]
        passed[part] = are_similar(*both, threshold=threshold)
    return passed


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
        side_by_side(read, numbers, where=slots[0])
    return values


_COLUMNS: Mapping[str, tuple[type[Any], tuple[int, ...]]] = {
    "order": (np.uint64, ()),
    "row": (np.uint32, ()),
    "slots": (np.uint8, (NUM_SLOTS,)),
}


def near_drops(slots: Sequence[AnyPath], member: Members, *, known: bool = False) -> pa.Table:
    """Return documents as drops, without those that were dropped within their segment.

    Args:
        slots: The .slots files of all segments.
        member: The documents.
        known: Whether they are similar to documents of earlier generations.
    """
    row = look_up(slots, "row", segment=member.segment, signer=member.signer)
    kept = row != NO_ROW
    return drop_table(
        member.order[kept],
        member.segment[kept],
        row[kept],
        reason=NEAR,
        known=np.full(int(kept.sum()), known),
    )


def is_linked(order: np.ndarray, linked: int) -> np.ndarray:
    """Return which documents (bool[n]) belong to the share linked / 2**32 whose links are kept."""
    chosen: np.ndarray = (order & np.uint64(ALL - 1)) < np.uint64(linked)
    return chosen


def edges_between(member: Members, smallest: Members) -> Edges:
    """Return pairs as edges from the member to the smallest."""
    places = [
        side.segment.astype(np.uint64) << np.uint64(32) | side.signer for side in (member, smallest)
    ]
    return Edges(member.order, places[0], smallest.order, places[1])


def segment_links(
    links: Sequence[AnyPath], slots: Sequence[AnyPath], within: Range, *, linked: int
) -> list[Edges]:
    """Return the pairs within each segment of documents in a range of the order, as edges.

    Args:
        links: The .links files of all segments.
        slots: Their .slots files.
        within: The range.
        linked: The share of the documents, as in is_linked.
    """

    def read(number: int) -> Edges:
        order = read_slots(slots[number], "order")
        inside = between(order, within.low, within.high)
        table = open_table(links[number])
        signers = column(table, "signer")
        first, last = np.searchsorted(signers, [inside.start, inside.stop])
        signer, smaller = signers[first:last], column(table, "smaller")[first:last]
        chosen = is_linked(order[signer], linked)
        signer, smaller = signer[chosen], smaller[chosen]
        segment = np.full(len(signer), number, np.uint32)
        member = Members(order[signer], segment, signer)
        return edges_between(member, Members(order[smaller], segment, smaller))

    return side_by_side(read, range(len(links)), where=links[0])


def edge_path(work: AnyPath, reference: str) -> AnyPath:
    """Return the path of a file of edges."""
    return work / f"{reference}.edges"
