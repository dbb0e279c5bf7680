import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.errors import UserError
from shards.order.scatter import check_layout, rank_slots, scatters_of_node, scatters_of_rank

WORLDS = [1, 3, 8, 64]


@given(
    st.integers(1, 70),
    st.integers(1, 20),
    st.integers(1, 6),
    st.integers(0, 10**15),
)
def test_every_slot_goes_to_one_rank(world: int, scatters: int, times: int, position: int) -> None:
    batch = world * times
    dealt = [
        rank_slots(batch, scatters, world=world, rank=rank, position=position)
        for rank in range(world)
    ]
    assert {len(slots) for slots in dealt} == {times}
    joined = np.concatenate(dealt)
    assert np.array_equal(np.sort(joined), np.arange(batch))
    scattered = (joined + position) % scatters
    assert np.array_equal(scattered, np.sort(scattered))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("num_scatters", [1, 12, 64])
def test_a_rank_has_few_scatters_over_a_whole_run(world: int, num_scatters: int) -> None:
    """From any position, and while the batch size changes on the way."""
    multiple = math.lcm(world, num_scatters)
    for rank in range(world):
        seen: set[int] = set()
        for position, times in [(0, 1), (multiple, 3), (12345, 1), (10**12 + 7, 2)]:
            size = multiple * times
            slots = rank_slots(size, num_scatters, world=world, rank=rank, position=position)
            seen |= set(((slots + position) % num_scatters).tolist())
        assert sorted(seen) == list(scatters_of_rank(num_scatters, world=world, rank=rank))
        assert len(seen) <= -(-num_scatters // world) + 1


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


def test_ranks_that_are_not_there() -> None:
    for rank in (-1, 4):
        with pytest.raises(ValueError, match=f"no rank {rank} in a world of 4"):
            rank_slots(8, 4, world=4, rank=rank, position=0)
        with pytest.raises(ValueError, match=f"no rank {rank}"):
            scatters_of_rank(4, world=4, rank=rank)
    with pytest.raises(ValueError, match="batch of 8 cannot be dealt to 3 ranks"):
        rank_slots(8, 4, world=3, rank=0, position=0)


def test_layouts_that_fit() -> None:
    assert check_layout(96, 8, world=3, placed=True) is None
    assert check_layout(10, 1, world=5, placed=True) is None


@pytest.mark.parametrize(
    ("batch", "scatters", "world", "message"),
    [
        (
            100,
            8,
            3,
            r"100 samples .* dealt to 3 ranks .* can: 99 and 102; .* 8 scatters too: 96 and 120$",
        ),
        (5, 8, 3, r"5 samples cannot be dealt to 3 ranks .* can: 3 and 6; .* 24$"),
        (0, 8, 3, r"0 samples cannot"),
    ],
)
def test_batches_that_cannot_be_dealt(batch: int, scatters: int, world: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_layout(batch, scatters, world=world, placed=False)


def test_batches_for_which_every_node_needs_everything() -> None:
    message = (
        r"batch of 60 samples is not a multiple of 8 scatters, so every node needs every shard\. "
        r"Nearby batch sizes that fit: 48 and 72; numbers of scatters: 6, 10"
    )
    with pytest.raises(UserError, match=message + ".*placed"):
        check_layout(60, 8, world=3, placed=True)
    note = check_layout(60, 8, world=3, placed=False)
    assert note is not None
    assert "The batches are the same in either case." in note
