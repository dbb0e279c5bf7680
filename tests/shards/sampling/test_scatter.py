import math
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.errors import UserError
from shards.sampling.scatter import check_layout, rank_slots, scatters_of_node, scatters_of_rank


@given(
    st.integers(1, 70),
    st.integers(1, 20),
    st.integers(1, 6),
    st.integers(0, 10**15),
    st.booleans(),
)
def test_every_slot_goes_to_one_rank(
    world: int, scatters: int, times: int, position: int, fits: bool
) -> None:
    """If the batch fits the scatters, each rank also needs few scatters, from any position."""
    batch = (math.lcm(world, scatters) if fits else world) * times
    dealt = [
        rank_slots(batch, scatters, world=world, rank=rank, position=position)
        for rank in range(world)
    ]
    assert {len(slots) for slots in dealt} == {batch // world}
    joined = np.concatenate(dealt)
    assert np.array_equal(np.sort(joined), np.arange(batch))
    scattered = (joined + position) % scatters
    assert np.array_equal(scattered, np.sort(scattered))
    for rank, slots in enumerate(dealt if fits else ()):
        seen = np.unique((slots + position) % scatters).tolist()
        assert seen == [*scatters_of_rank(scatters, world=world, rank=rank)]
        assert len(seen) <= -(-scatters // world) + 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 64))
def test_nodes_hold_everything_together(nodes: list[int], num_scatters: int) -> None:
    world = sum(nodes)
    first = 0
    for node, ranks in enumerate(nodes):
        own = set(scatters_of_node(num_scatters, nodes=nodes, node=node))
        assert own == {
            scatter
            for rank in range(first, first + ranks)
            for scatter in scatters_of_rank(num_scatters, world=world, rank=rank)
        }
        first += ranks


@pytest.mark.parametrize(
    ("batch", "scatters", "world", "says"),
    [
        (96, 8, 3, ""),
        (10, 1, 5, ""),
        (
            100,
            8,
            3,
            r"divided evenly among 3 ranks; .* can: 99 and 102; .* 8 scatters too: 96 and 120$",
        ),
        (5, 8, 3, r"5 samples cannot be divided evenly among 3 ranks; .* can: 3 and 6; .* 24$"),
        (0, 8, 3, r"0 samples cannot"),
        (60, 8, 3, r"60 samples is not .* fit: 48 and 72; numbers of scatters: 6, 10\. .*placed"),
    ],
)
def test_batches_that_fit_ranks_and_scatters(
    batch: int, scatters: int, world: int, says: str
) -> None:
    with pytest.raises(UserError, match=says) if says else nullcontext():
        assert check_layout(batch, scatters, world=world, placed=True) is None
    if "placed" in says:
        note = check_layout(batch, scatters, world=world, placed=False)
        assert "The batches are the same in either case." in str(note)
