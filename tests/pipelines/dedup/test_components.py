from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dedup.components import (
    EDGE_SCHEMA,
    Edges,
    Stars,
    component_members,
    large_star,
    small_star,
)

Node = tuple[int, int]
"""Order and place."""

NODES = st.tuples(st.integers(0, 5), st.integers(0, 4))
PAIRS = st.lists(st.tuples(NODES, NODES).filter(lambda pair: pair[0] != pair[1]), max_size=40)


def edges(pairs: list[tuple[Node, Node]]) -> Edges:
    rows = np.array([(*one, *other) for one, other in pairs], np.uint64).reshape(-1, 4)
    return Edges(*(rows[:, at].copy() for at in range(4)))


def listed(found: Edges) -> list[tuple[Node, Node]]:
    columns = [getattr(found, name).tolist() for name in EDGE_SCHEMA.names]
    return [((a, b), (c, d)) for a, b, c, d in zip(*columns, strict=True)]


def downward(pairs: list[tuple[Node, Node]]) -> list[tuple[Node, Node]]:
    return [(max(pair), min(pair)) for pair in pairs]


def components(pairs: list[tuple[Node, Node]]) -> dict[Node, Node]:
    """The smallest of each node's component."""
    smallest = {node: node for pair in pairs for node in pair}
    while True:
        before = dict(smallest)
        for one, other in pairs:
            smallest[one] = smallest[other] = min(smallest[one], smallest[other])
        if before == smallest:
            return smallest


def settled(pairs: list[tuple[Node, Node]]) -> tuple[Stars, int]:
    """The stars once nothing changes any more, and the number of rounds."""
    found, checksum, rounds = edges(downward(pairs)), -1, 0
    while (stars := Stars.of(found)).checksum() != checksum:
        checksum = stars.checksum()
        found = large_star(Stars.of(small_star(stars).both_ways()))
        rounds += 1
    return Stars.of(small_star(stars).both_ways()), rounds


@given(PAIRS)
def test_every_document_ends_up_joined_to_the_smallest_of_its_component(
    pairs: list[tuple[Node, Node]],
) -> None:
    smallest = components(pairs)
    stars, _ = settled(pairs)
    members, sizes = component_members(stars)
    found = dict(listed(stars.edges[members]))
    assert found == {node: top for node, top in smallest.items() if node != top}
    counts: dict[Node, int] = defaultdict(int)
    for top in smallest.values():
        counts[top] += 1
    assert sizes.tolist() == [counts[top] for top in sorted(counts)]


@given(PAIRS)
def test_a_star_is_what_the_paper_says(pairs: list[tuple[Node, Node]]) -> None:
    neighbours: dict[Node, set[Node]] = defaultdict(set)
    for one, other in pairs:
        neighbours[one].add(other)
        neighbours[other].add(one)
    small, large = set(), set()
    for node, others in neighbours.items():
        smaller = [other for other in others if other < node]
        if smaller:
            top = min(smaller)
            small |= {(other, top) for other in [*smaller, node] if other != top}
        large |= {(other, min([*others, node])) for other in others if other > node}
    assert set(listed(small_star(Stars.of(edges(downward(pairs)))))) == small
    assert set(listed(large_star(Stars.of(edges(pairs).both_ways())))) == large


@pytest.mark.parametrize(("num", "most"), [(2, 2), (10, 4), (1000, 10), (20_000, 14)])
def test_a_chain_in_random_order_settles_soon(num: int, most: int) -> None:
    order = np.random.default_rng(num).permutation(num).astype(np.uint64)
    nothing = np.zeros(num - 1, np.uint64)
    one, other = order[1:], order[:-1]
    found = Edges(np.maximum(one, other), nothing, np.minimum(one, other), nothing)
    checksum, rounds = -1, 0
    while (stars := Stars.of(found)).checksum() != checksum:
        checksum = stars.checksum()
        found = large_star(Stars.of(small_star(stars).both_ways()))
        rounds += 1
    assert rounds <= most
    assert not stars.edges.to_order.any()
    assert len(stars.edges) == num - 1


def test_edges_are_distinct_and_sorted_in_a_table_and_in_stars() -> None:
    pairs = [((2, 0), (1, 5)), ((2, 0), (1, 4)), ((1, 9), (0, 0)), ((2, 0), (1, 5))]
    stars = Stars.of(edges(pairs))
    assert listed(stars.edges) == sorted(set(pairs))
    assert stars.first.tolist() == [True, True, False]
    table = edges(pairs).table()
    assert table.schema == EDGE_SCHEMA
    assert listed(Edges.of(table)) == sorted(pairs)
    assert len(Edges.concatenate([])) == 0


@given(PAIRS, st.integers(0, 5))
def test_checksums_of_ranges_add_up_and_differ_between_sets(
    pairs: list[tuple[Node, Node]], cut: int
) -> None:
    whole = Stars.of(edges(pairs))
    parts = [
        Stars.of(edges([pair for pair in pairs if (pair[0][0] < cut) == below]))
        for below in (True, False)
    ]
    assert sum(part.checksum() for part in parts) % 2**64 == whole.checksum()
    if pairs:
        fewer = [pair for pair in pairs if pair != pairs[0]]
        assert Stars.of(edges(fewer)).checksum() != whole.checksum()
