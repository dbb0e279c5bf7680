"""Near-duplicates across segments: one range of one band in, pairs of documents out.

A task holds the range's rows of all segments, 13 bytes each, and sorts them. Only for rows whose
hash is not alone does it look up order and slots, in one segment's file after the other, so
memory does not depend on the corpus.

Of the documents that share a band's hash each is paired with the smallest. Smallest is: by order,
then by the segment's number, then by the signer's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import EDGES, PAIRS_AT_ONCE, BandRows, open_bands, read_slots, similar
from pipelines.dedup.components import Edges
from pipelines.dedup.drops import GONE, NEAR, drop_table
from pipelines.dedup.exact import Group, alike
from pipelines.dedup.minhash import NUM_SLOTS
from pipelines.segments.sparse import side_by_side
from pipelines.segments.tables import between, column, open_table
from shards.storage.remote import AnyPath

ALL = 1 << 32
"""What is_linked takes for every document."""


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
    """Documents that share a band, each with the smallest one that shares it."""

    member: Members
    smallest: Members
    passed: np.ndarray
    """bool[n]: similar enough."""
    group: Group
    """The groups that they come from, rows of the range."""


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
    wide = EDGES // ranges
    ends = {"first": index * wide, "last": (index + 1) * wide}
    found: list[BandRows | None] = []
    found += side_by_side(lambda path: open_bands(path, band, **ends), paths, where=paths[0])
    starts = np.cumsum([0, *(len(each.hash) for each in found if each is not None)])
    num = int(starts[-1])
    rows = BandRows(np.empty(num, np.uint64), np.empty(num, np.uint32), np.empty(num, np.uint8))
    for number, read in enumerate(found):
        part = slice(starts[number], starts[number + 1])
        if read is not None:
            rows.hash[part], rows.signer[part] = read.hash, read.signer
            rows.copies[part] = read.copies
        found[number] = None  # what came of a URL is copied as it is let go
    return rows, starts


def pairs(
    rows: BandRows,
    starts: np.ndarray,
    *,
    slots: Sequence[AnyPath],
    range_bits: int,
    threshold: float,
) -> Iterator[Pairs]:
    """Yield the pairs of a range, a block of groups at a time.

    Args:
        rows: The rows of the range.
        starts: Where each segment's rows begin.
        slots: The .slots files of all segments.
        range_bits: Number of leading bits of the hash that the whole range has in common.
        threshold: Least similarity; 0 asks for a shared band alone.
    """
    for block in alike(rows.hash, range_bits=range_bits):
        segment = (np.searchsorted(starts, block, "right") - 1).astype(np.uint32)
        signer = rows.signer[block]
        order = looked_up(slots, "order", segment=segment, signer=signer)
        hashes = rows.hash[block]
        by = np.lexsort((signer, segment, order, hashes))
        first = np.ones(len(by), bool)
        first[1:] = hashes[by[1:]] != hashes[by[:-1]]
        members = Members(order[by], segment[by], signer[by])
        smallest = np.flatnonzero(first)[np.cumsum(first) - 1][~first]
        one, other = members[~first], members[smallest]
        passed = _passed(slots, one, other, threshold=threshold)
        yield Pairs(one, other, passed, Group(block[by], first))


def _passed(
    slots: Sequence[AnyPath], one: Members, other: Members, *, threshold: float
) -> np.ndarray:
    passed = np.ones(len(one), bool)
    if not threshold:
        return passed
    for at in range(0, len(one), PAIRS_AT_ONCE):
        part = np.arange(at, min(at + PAIRS_AT_ONCE, len(one)))
        both = [
            looked_up(slots, "slots", segment=side[part].segment, signer=side[part].signer)
            for side in (one, other)
        ]
        passed[part] = similar(*both, threshold=threshold)
    return passed


def looked_up(
    slots: Sequence[AnyPath], name: str, *, segment: np.ndarray, signer: np.ndarray
) -> np.ndarray:
    """Return a column of the .slots files for some signers.

    Args:
        slots: The files of all segments, by number.
        name: The column: order, row or slots.
        segment: int[n].
        signer: int[n].
    """
    kind, shape = _COLUMNS[name]
    found = np.empty((len(signer), *shape), kind)
    by = np.argsort(segment, kind="stable")
    bounds = np.searchsorted(segment[by], np.arange(len(slots) + 1))

    def read(number: int) -> None:
        rows = by[bounds[number] : bounds[number + 1]]
        found[rows] = read_slots(slots[number], name, signer[rows])

    numbers: list[int] = np.flatnonzero(np.diff(bounds)).tolist()
    if numbers:
        side_by_side(read, numbers, where=slots[0])
    return found


_COLUMNS: Mapping[str, tuple[type[Any], tuple[int, ...]]] = {
    "order": (np.uint64, ()),
    "row": (np.uint32, ()),
    "slots": (np.uint8, (NUM_SLOTS,)),
}


def near_drops(slots: Sequence[AnyPath], member: Members) -> pa.Table:
    """Return the documents as drops, without those that their segment has left out."""
    row = looked_up(slots, "row", segment=member.segment, signer=member.signer)
    there = row != GONE
    return drop_table(member.order[there], member.segment[there], row[there], reason=NEAR)


def is_linked(order: np.ndarray, linked: int) -> np.ndarray:
    """Return which documents (bool[n]) are of the share of linked / 2**32 whose links are kept."""
    chosen: np.ndarray = (order & np.uint64(ALL - 1)) < np.uint64(linked)
    return chosen


def edges_between(member: Members, smallest: Members) -> Edges:
    """Return pairs as edges, from the member to the smallest."""
    places = [
        side.segment.astype(np.uint64) << np.uint64(32) | side.signer for side in (member, smallest)
    ]
    return Edges(member.order, places[0], smallest.order, places[1])


def segment_links(
    links: Sequence[AnyPath], slots: Sequence[AnyPath], *, low: int, high: int, linked: int
) -> list[Edges]:
    """Return the pairs found within each segment, of documents with low <= order < high, as edges.

    Args:
        links: The .links files of all segments.
        slots: Their .slots files.
        low: Least order.
        high: Orders are less; 2**64 for all.
        linked: As is_linked takes it.
    """

    def read(number: int) -> Edges:
        order = read_slots(slots[number], "order")
        inside = between(order, low, high)
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
