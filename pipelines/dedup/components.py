"""Connected components of the pairs that dedup found, by alternating large-star and small-star.

Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii, "Connected Components in MapReduce and Beyond",
SoCC 2014. An edge joins two documents; in a *small star* a document's smaller neighbours are joined
to the smallest of them, in a *large star* its larger ones. Both keep the components. Where they
change nothing any more, every document is joined to the smallest of its component and to no other.

A pass works on one range of the centre's order, so memory is one range.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.segments.tables import column

EDGES = pa.schema([(name, pa.uint64()) for name in ("order", "place", "to_order", "to_place")])
"""Edges from a centre to a neighbour, sorted by the centre's order.

place is the segment's number, and in the low 32 bits the signer's. Documents compare by order, then
by place.
"""


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges, as EDGES: uint64[n] each."""

    order: np.ndarray
    place: np.ndarray
    to_order: np.ndarray
    to_place: np.ndarray

    @classmethod
    def of(cls, table: pa.Table) -> "Edges":
        """Return the edges of a table."""
        return cls(*(column(table, name) for name in EDGES.names))

    @classmethod
    def concatenate(cls, parts: "list[Edges]") -> "Edges":
        """Return the edges of all parts."""
        return cls(
            *(
                np.concatenate([np.zeros(0, np.uint64), *(getattr(part, name) for part in parts)])
                for name in EDGES.names
            )
        )

    def table(self) -> pa.Table:
        """Return the edges as a table, sorted."""
        by = np.lexsort((self.to_place, self.to_order, self.place, self.order))
        return pa.table([getattr(self, name)[by] for name in EDGES.names], schema=EDGES)

    def both_ways(self) -> "Edges":
        """Return each edge and its reverse."""
        turned = Edges(self.to_order, self.to_place, self.order, self.place)
        return Edges.concatenate([self, turned])

    def __getitem__(self, rows: np.ndarray) -> "Edges":
        return Edges(*(getattr(self, name)[rows] for name in EDGES.names))

    def __len__(self) -> int:
        return len(self.order)


@dataclass(frozen=True, slots=True)
class Stars:
    """Distinct edges, sorted by centre and neighbour, and where each centre's begin."""

    edges: Edges
    first: np.ndarray
    """bool[n]"""

    @classmethod
    def of(cls, edges: Edges) -> "Stars":
        """Return the stars that edges make."""
        by = np.lexsort((edges.to_place, edges.to_order, edges.place, edges.order))
        edges = edges[by]
        again = np.zeros(len(edges), bool)
        if len(edges):
            same = np.ones(len(edges) - 1, bool)
            for name in EDGES.names:
                values = getattr(edges, name)
                same &= values[1:] == values[:-1]
            again[1:] = same
        edges = edges[~again]
        first = np.ones(len(edges), bool)
        first[1:] = (edges.order[1:] != edges.order[:-1]) | (edges.place[1:] != edges.place[:-1])
        return cls(edges, first)

    def nearest(self) -> np.ndarray:
        """Return for each edge (int64[n]) the row of its centre's smallest neighbour."""
        starts: np.ndarray = np.flatnonzero(self.first)[np.cumsum(self.first) - 1]
        return starts

    def upward(self) -> np.ndarray:
        """Return which edges (bool[n]) go from a centre to a larger neighbour."""
        found: np.ndarray = _less(
            self.edges.order, self.edges.place, self.edges.to_order, self.edges.to_place
        )
        return found

    def checksum(self) -> int:
        """Return a checksum of the set of edges; those of disjoint sets add up mod 2**64."""
        mixed = np.zeros(len(self.edges), np.uint64)
        for name in EDGES.names:
            mixed = (mixed ^ getattr(self.edges, name)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        return int(mixed.sum(dtype=np.uint64))


def small_star(stars: Stars) -> Edges:
    """Return the edges after a small star: from larger to smaller, as those given must be."""
    edges, nearest = stars.edges, stars.nearest()
    to = edges[nearest]
    centres = edges[stars.first]
    others = ~stars.first
    return Edges.concatenate(
        [
            centres,
            Edges(
                edges.to_order[others], edges.to_place[others], to.to_order[others],
                to.to_place[others],
            ),
        ]
    )  # fmt: skip


def large_star(stars: Stars) -> Edges:
    """Return the edges after a large star, from larger to smaller; those given go both ways."""
    edges, up = stars.edges, stars.upward()
    to = edges[stars.nearest()]
    # The smallest of the centre and its neighbours: the first neighbour, or the centre itself.
    own = _less(edges.order, edges.place, to.to_order, to.to_place)
    order = np.where(own, edges.order, to.to_order)
    place = np.where(own, edges.place, to.to_place)
    return Edges(edges.to_order[up], edges.to_place[up], order[up], place[up])


def roots(stars: Stars) -> tuple[np.ndarray, np.ndarray]:
    """Return of components found, edges going both ways, the rows of members and the sizes.

    Members are all but the smallest of each component: the first edge of each (int64[m]). Sizes
    count the smallest as well (int64[k]).
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
