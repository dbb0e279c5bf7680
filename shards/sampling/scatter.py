"""Assigns the samples of a batch to ranks so that each rank opens few scatters.

The slots of a batch are sorted by scatter and divided among the ranks in equal runs:

    S = 4, B = 8, W = 3 + 1        slot      0 1 2 3 4 5 6 7
    position 5: scatter of a slot            1 2 3 0 1 2 3 0
                                   sorted    3 7 | 0 4 | 1 5 | 2 6
                                   rank      0     1     2     3

If S divides B, a rank has the scatters from floor(rank·S / W) to ceil((rank + 1)·S / W) - 1, which
are at most ceil(S / W) + 1, at any position and for any such B. The batch is the same for every W.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shards.errors import UserError


def rank_slots(
    batch_size: int, num_scatters: int, *, world: int, rank: int, position: int
) -> NDArray[np.int64]:
    """Return int64[batch_size / world]: the slots of a rank, by scatter and then by slot.

    Args:
        batch_size: B, samples in the batch of all ranks; a multiple of `world`.
        num_scatters: S, the number of scatters.
        world: W, the number of ranks.
        rank: the number of the rank, counted from 0.
        position: the position of the batch's first sample.

    Raises:
        ValueError: there is no such rank, or the batch cannot be divided evenly.
    """
    _check_rank(rank, world)
    if batch_size % world:
        raise ValueError(f"a batch of {batch_size} cannot be divided among {world} ranks")
    slots = np.arange(batch_size)
    share = batch_size // world
    order = np.argsort((slots + position) % num_scatters, kind="stable")
    return order[rank * share : (rank + 1) * share]


def scatters_of_rank(num_scatters: int, *, world: int, rank: int) -> range:
    """Return the scatters that a rank reads in a run whose batch sizes are multiples of S."""
    _check_rank(rank, world)
    return range(rank * num_scatters // world, -(-(rank + 1) * num_scatters // world))


def scatters_of_node(num_scatters: int, *, nodes: Sequence[int], node: int) -> range:
    """Return the scatters that the ranks of a node read.

    Args:
        num_scatters: S, the number of scatters.
        nodes: the number of ranks on each node; ranks are numbered node by node.
        node: the number of the node, counted from 0.

    Raises:
        UserError: there is no such node, or a node has no ranks.
    """
    if not nodes or min(nodes) < 1:
        raise UserError(f"nodes of {list(nodes)} ranks: every node must have one or more")
    if not 0 <= node < len(nodes):
        raise UserError(f"there is no node {node}: the nodes are 0 to {len(nodes) - 1}")
    world, first = sum(nodes), sum(nodes[:node])
    last = first + nodes[node] - 1
    return range(
        scatters_of_rank(num_scatters, world=world, rank=first).start,
        scatters_of_rank(num_scatters, world=world, rank=last).stop,
    )


def check_layout(batch_size: int, num_scatters: int, *, world: int, placed: bool) -> str | None:
    """Check a layout; return a note if it works but has a drawback, else None.

    Args:
        batch_size: the number of samples in the batch of all ranks.
        num_scatters: S, the number of scatters.
        world: the number of ranks.
        placed: whether nodes have only the shards of their scatters.

    Raises:
        UserError: the layout does not work; the message names the nearest sizes that do.
    """
    if batch_size < 1 or batch_size % world:
        raise UserError(
            f"a batch of {batch_size} samples cannot be divided evenly among {world} ranks; "
            f"nearby batch sizes that can: {_near(batch_size, world)}; multiples of the "
            f"{num_scatters} scatters too: {_near(batch_size, math.lcm(world, num_scatters))}"
        )
    if batch_size % num_scatters == 0:
        return None
    fits = _near(batch_size, math.lcm(world, num_scatters))
    divisors = [n for n in range(1, batch_size + 1) if batch_size % n == 0]
    scatters = sorted(sorted(divisors, key=lambda n: (abs(n - num_scatters), n))[:2])
    note = (
        f"a batch of {batch_size} samples is not a multiple of {num_scatters} scatters, so every "
        f"node needs every shard. Nearby batch sizes that fit: {fits}; numbers of scatters: "
        f"{', '.join(map(str, scatters))}"
    )
    if placed:
        raise UserError(f"{note}. The shards are placed on nodes: choose one of these.")
    return f"{note}. The batches are the same in either case."


def _near(batch_size: int, multiple: int) -> str:
    """Return the nearest multiples of a number below and above a batch size, as text."""
    below = batch_size // multiple * multiple
    return " and ".join(str(size) for size in (below, below + multiple) if size)


def _check_rank(rank: int, world: int) -> None:
    if not 0 <= rank < world:
        raise ValueError(f"there is no rank {rank} in a world of {world}")
