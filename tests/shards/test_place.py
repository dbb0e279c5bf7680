from pathlib import Path

import pytest

from shards import place
from shards.errors import DamageError, UserError
from shards.manifest import read_manifest
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


def test_an_interrupted_run_is_no_dataset_and_goes_on(pristine: Path, tmp_path: Path) -> None:
    share, to = WHOLE, tmp_path / "disk"
    placing = place.place(Dataset.open(pristine), share, to=to)
    first = [next(placing)[0] for _ in range(5)]
    placing.close()
    with pytest.raises(UserError, match=r"holds no dataset: it has no manifest\.json"):
        read_manifest(to)
    placed = put_all(pristine, share, to)
    assert [path for path, copied in placed if not copied] == first
    assert read_manifest(to) == read_manifest(pristine)


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


def test_nothing_is_written_through_a_link_of_the_target(pristine: Path, tmp_path: Path) -> None:
    outside, to = tmp_path / "outside", tmp_path / "disk"
    for folder in (outside, to):
        folder.mkdir()
    (to / GENERATION).symlink_to(outside)
    with pytest.raises(DamageError, match=rf"{GENERATION}/.* leads by a link to .*outside"):
        put_all(pristine, WHOLE, to)
    with pytest.raises(DamageError, match=rf"{GENERATION}/.* leads by a link to .*outside"):
        list(place.check_placed(Dataset(to, read_manifest(pristine)), WHOLE))
    assert list(outside.iterdir()) == []
    assert [path.name for path in to.iterdir()] == [GENERATION]
