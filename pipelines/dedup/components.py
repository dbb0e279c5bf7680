"""Connected components of the pairs that dedup found, by alternating large stars and small stars.

Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii, "Connected Components in MapReduce and Beyond",
SoCC 2014. An edge joins two documents; in a *small star* a document and its smaller neighbours are
joined to the smallest of them, in a *large star* its larger neighbours are. Both keep the
components. Once they change nothing, every document is joined to the smallest of its component and
to no other.

A task works on one range of the centres' order, so it needs the memory of one range.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.dedup.runs import run_starts, start_rows
from shards.tables import column

EDGE_SCHEMA = pa.schema(
    [(name, pa.uint64()) for name in ("order", "place", "to_order", "to_place")]
)
"""Edges from a centre to a neighbour, sorted by the centre's order.

place holds the segment's number in the high 32 bits and the signer's in the low ones. Documents
compare by order, then by place.
"""


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges, the columns of EDGE_SCHEMA as uint64[n] each."""

    order: np.ndarray
    place: np.ndarray
    to_order: np.ndarray
    to_place: np.ndarray

    @classmethod
    def of(cls, table: pa.Table) -> "Edges":
        """Return the edges of a table."""
        return cls(*(column(table, name) for name in EDGE_SCHEMA.names))

    @classmethod
    def concatenate(cls, parts: "list[Edges]") -> "Edges":
        """Return the edges of all parts."""
        return cls(
            *(
                np.concatenate([np.zeros(0, np.uint64), *(getattr(part, name) for part in parts)])
                for name in EDGE_SCHEMA.names
            )
        )

    def table(self) -> pa.Table:
        """Return the edges as a table, sorted."""
        edges = self.sorted()
        return pa.table([getattr(edges, name) for name in EDGE_SCHEMA.names], schema=EDGE_SCHEMA)

    def sorted(self) -> "Edges":
        """Return the edges sorted by centre and neighbour."""
        return self[np.lexsort((self.to_place, self.to_order, self.place, self.order))]

    def both_ways(self) -> "Edges":
        """Return each edge and its reverse."""
        reverse = Edges(self.to_order, self.to_place, self.order, self.place)
        return Edges.concatenate([self, reverse])

    def __getitem__(self, rows: np.ndarray) -> "Edges":
        return Edges(*(getattr(self, name)[rows] for name in EDGE_SCHEMA.names))

    def __len__(self) -> int:
        return len(self.order)


@dataclass(frozen=True, slots=True)
class Stars:
    """Distinct edges by centre and neighbour; `first` (bool[n]) marks the first of each centre."""

    edges: Edges
    first: np.ndarray

    @classmethod
    def of(cls, edges: Edges) -> "Stars":
        """Return the stars that edges make."""
        edges = edges.sorted()
        edges = edges[run_starts(*(getattr(edges, name) for name in EDGE_SCHEMA.names))]
        return cls(edges, run_starts(edges.order, edges.place))

    def upward(self) -> np.ndarray:
        """Return which edges (bool[n]) go from a centre to a larger neighbour."""
        edges = self.edges
        return _less(edges.order, edges.place, edges.to_order, edges.to_place)

    def checksum(self) -> int:
        """Return a checksum of the set of edges; those of disjoint sets add up mod 2**64."""
        mixed = np.zeros(len(self.edges), np.uint64)
        for name in EDGE_SCHEMA.names:
            mixed = (mixed ^ getattr(self.edges, name)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        return int(mixed.sum(dtype=np.uint64))


def small_star(stars: Stars) -> Edges:
    """Return the edges after a small star: from larger to smaller, as those of `stars` must be."""
    edges = stars.edges
    others = edges[~stars.first]
    smallest = edges[start_rows(stars.first)[~stars.first]]
    moved = Edges(others.to_order, others.to_place, smallest.to_order, smallest.to_place)
    return Edges.concatenate([edges[stars.first], moved])


def large_star(stars: Stars) -> Edges:
    """Return the edges after a large star, from larger to smaller; `stars` has both directions."""
    edges, up = stars.edges, stars.upward()
    to = edges[start_rows(stars.first)]
    # The smallest of the centre and its neighbours: the first neighbour, or the centre itself.
    own = _less(edges.order, edges.place, to.to_order, to.to_place)
    order = np.where(own, edges.order, to.to_order)
    place = np.where(own, edges.place, to.to_place)
    return Edges(edges.to_order[up], edges.to_place[up], order[up], place[up])


def component_members(stars: Stars) -> tuple[np.ndarray, np.ndarray]:
    """Return the members and the sizes of finished components; edges go both ways.

    Members are all documents but the smallest of each component, as rows of their first edges
    (int64[m]). Sizes (int64[k]) count the smallest as well.
    """
    up = stars.upward()
    members = np.flatnonzero(stars.first & ~up)
    tops = np.flatnonzero(stars.first)
    sizes = np.diff(tops, append=len(up))[up[tops]] + 1
    return members, sizes


def _less(
    order: np.ndarray, place: np.ndarray, to_order: np.ndarray, to_place: np.ndarray
) -> np.ndarray:
    less: np.ndarray = (order < to_order) | ((order == to_order) & (place < to_place))
    return less
