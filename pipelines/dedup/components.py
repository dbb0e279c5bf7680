"""Connected components of the pairs that dedup found, as a forest: each document and its smallest.

A union-find over whole columns: the larger root of each edge is hung below the smaller one until
both ends of every edge have the same root. Edges are taken file by file, and only the forest of
those before is kept: at most one edge for each document that is not the smallest of its component.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.dedup.exact import run_starts
from shards.tables import column

EDGE_SCHEMA = pa.schema(
    [(name, pa.uint64()) for name in ("order", "place", "to_order", "to_place")]
)
"""Edges between two documents.

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
        """Return the edges as a table."""
        return pa.table([getattr(self, name) for name in EDGE_SCHEMA.names], schema=EDGE_SCHEMA)

    def __len__(self) -> int:
        return len(self.order)


def spanning_forest(parts: Iterable[Edges]) -> Edges:
    """Return an edge from each document that is not the smallest of its component to that one.

    Args:
        parts: The edges; equal ones and both directions may occur.
    """
    forest = Edges.concatenate([])
    for part in parts:
        forest = _forest(Edges.concatenate([forest, part]))
    return forest


def _forest(edges: Edges) -> Edges:
    order = np.concatenate([edges.order, edges.to_order])
    place = np.concatenate([edges.place, edges.to_place])
    ranked = np.lexsort((place, order))
    first = run_starts(order[ranked], place[ranked])
    number = np.empty(len(ranked), np.int64)
    number[ranked] = np.cumsum(first) - 1
    ends = ranked[first]  # of each document one of its places
    roots = _roots(number[: len(edges)], number[len(edges) :], len(ends))
    below = np.flatnonzero(roots != np.arange(len(ends)))
    document, smallest = ends[below], ends[roots[below]]
    return Edges(order[document], place[document], order[smallest], place[smallest])


def _roots(one: np.ndarray, other: np.ndarray, num: int) -> np.ndarray:
    """Return the smallest of each one's component (int64[num]), given edges as numbers."""
    parent = np.arange(num)
    while True:
        tops = parent[one], parent[other]
        if np.array_equal(*tops):
            return parent
        np.minimum.at(parent, np.maximum(*tops), np.minimum(*tops))
        while not np.array_equal(above := parent[parent], parent):
            parent = above


def component_sizes(forest: Edges) -> np.ndarray:
    """Return how many documents each component has (int64[k])."""
    _, counts = np.unique(np.stack([forest.to_order, forest.to_place]), axis=1, return_counts=True)
    sizes: np.ndarray = counts + 1
    return sizes
