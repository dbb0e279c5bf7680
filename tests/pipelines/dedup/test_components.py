from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dedup.components import EDGE_SCHEMA, Edges, component_sizes, spanning_forest

Node = tuple[int, int]
"""Order and place."""

NODES = st.tuples(st.integers(0, 5), st.integers(0, 4))
PAIRS = st.lists(st.tuples(NODES, NODES), max_size=40)


def edges(pairs: list[tuple[Node, Node]]) -> Edges:
    rows = np.array([(*one, *other) for one, other in pairs], np.uint64).reshape(-1, 4)
    return Edges(*(rows[:, at].copy() for at in range(4)))


def listed(found: Edges) -> list[tuple[Node, Node]]:
    columns = [getattr(found, name).tolist() for name in EDGE_SCHEMA.names]
    return [((a, b), (c, d)) for a, b, c, d in zip(*columns, strict=True)]


def components(pairs: list[tuple[Node, Node]]) -> dict[Node, Node]:
    """The smallest of each node's component."""
    smallest = {node: node for pair in pairs for node in pair}
    while True:
        before = dict(smallest)
        for one, other in pairs:
            smallest[one] = smallest[other] = min(smallest[one], smallest[other])
        if before == smallest:
            return smallest


@given(st.lists(PAIRS, max_size=4))
def test_every_document_hangs_below_the_smallest_of_its_component(
    parts: list[list[tuple[Node, Node]]],
) -> None:
    smallest = components([pair for part in parts for pair in part])
    forest = spanning_forest(Edges.of(edges(part).table()) for part in parts)
    assert listed(forest) == [(node, top) for node, top in sorted(smallest.items()) if node != top]
    counts = Counter(smallest.values())
    assert sorted(component_sizes(forest)) == sorted(
        count for count in counts.values() if count > 1
    )


@pytest.mark.parametrize("num", [1, 2, 10, 20_000])
def test_a_chain_in_random_order_is_one_component(num: int) -> None:
    order = np.random.default_rng(num).permutation(num).astype(np.uint64)
    nothing = np.zeros(num - 1, np.uint64)
    forest = spanning_forest([Edges(order[1:], nothing, order[:-1], nothing)])
    assert forest.order.tolist() == list(range(1, num))
    assert not forest.to_order.any()
