from pathlib import Path

import pytest

from shards import place
from shards.order.sampler import Sampler
from shards.order.scatter import rank_slots, scatters_of_node
from shards.order.streams import streams_of
from shards.place import NodeShare
from shards.reader import Dataset
from shards.windows import causal_windows
from tests.shards.conftest import GENERATION, TEXTS, build


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """A dataset whose four shards of wudao all hold text."""
    build(tmp_path / "full", {**TEXTS, f"{GENERATION}/wudao/00001": ["b"]})
    return tmp_path / "full"


WHOLE = NodeShare(scatters=(0,), num_scatters=1)


def put_all(dataset: Path, share: NodeShare, to: Path) -> list[tuple[str, bool]]:
    placed = place.place(Dataset.open(dataset), share, to=to)
    return [(path, copied) for path, _, copied in placed]


@pytest.mark.parametrize("node", [0, 1, 2])
def test_a_node_has_all_that_its_ranks_read(full: Path, tmp_path: Path, node: int) -> None:
    nodes, scatters = (2, 1, 1), 4
    own = scatters_of_node(scatters, nodes=nodes, node=node)
    put_all(full, NodeShare(scatters=tuple(own), num_scatters=scatters), to := tmp_path / "disk")
    samplers = [
        Sampler(
            streams_of(Dataset.open(directory)),
            seed=1,
            num_scatters=scatters,
            window=causal_windows(4),
        )
        for directory in (full, to)
    ]
    assert samplers[0].identity == samplers[1].identity
    opened = set()
    for first in range(0, 400, 8):
        for rank in range(sum(nodes[:node]), sum(nodes[: node + 1])):
            slots = rank_slots(8, scatters, world=4, rank=rank, position=first)
            draws = samplers[1].draw(first + slots)
            places = samplers[1].locate(draws)
            opened |= set(zip(draws.stream.tolist(), places.shard.tolist(), strict=True))
    assert len(opened) == len(own) + 1  # a shard for each scatter, and the common one
    for stream, number in opened:
        dataset = samplers[1].streams[stream].dataset
        assert len(dataset.shard(samplers[1].streams[stream].shards[number]))
