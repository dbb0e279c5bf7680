from dataclasses import replace
from pathlib import Path

import pytest

from shards import place
from shards.errors import DamageError, UserError
from shards.manifest import Manifest, read_manifest, write_manifest
from shards.order.sampler import Sampler
from shards.order.scatter import rank_slots, scatters_of_node
from shards.order.streams import streams_of
from shards.place import NodeShare, needed_files
from shards.reader import Dataset
from shards.windows import causal_windows
from tests.shards.conftest import GENERATION, put_texts
from tests.shards.datasets import with_sources

COMMON = ["pile/00000", "wudao/validation-00000"]
"""One shard is fewer than any S above 1; validation is everybody's."""


@pytest.fixture
def full(dataset: Path) -> Path:
    """A dataset whose four shards of wudao all hold text."""
    manifest = read_manifest(dataset)
    wudao = manifest.generations[0].sources["wudao"]
    shards = list(wudao.shards)
    shards[1] = put_texts(dataset, f"{GENERATION}/wudao/00001", ["b"], order=1 << 62)
    write_manifest(dataset, with_sources(manifest, wudao=replace(wudao, shards=tuple(shards))))
    return dataset


def share_of(*scatters: int, of: int) -> NodeShare:
    return NodeShare(scatters=scatters, num_scatters=of)


def put_all(dataset: Path, share: NodeShare, to: Path) -> list[tuple[str, bool]]:
    placed = place.place(Dataset.open(dataset), share, to=to)
    return [(path, copied) for path, _, copied in placed]


def stems(manifest: Manifest, share: NodeShare) -> list[str]:
    paths = [path for path, _ in needed_files(manifest, share) if path.endswith(".bin")]
    return [path.split("/", 1)[1].removesuffix(".bin") for path in paths]


@pytest.mark.parametrize(
    ("share", "shards"),
    [
        (share_of(0, of=1), [0, 1, 2, 3]),
        (share_of(0, of=2), [0, 2]),
        (share_of(1, of=2), [1, 3]),
        (share_of(0, 1, of=4), [0, 1]),
        (share_of(3, of=4), [3]),
        (share_of(of=4), []),
        (share_of(0, of=8), [0, 1, 2, 3]),  # four shards are fewer than 8: common
    ],
)
def test_a_node_needs_its_shards_and_the_common_ones(
    full: Path, share: NodeShare, shards: list[int]
) -> None:
    own = [f"wudao/{number:05d}" for number in shards]
    assert sorted(stems(read_manifest(full), share)) == sorted([*COMMON, *own])


def test_a_stream_with_an_empty_scatter_is_common(pristine: Path) -> None:
    every = stems(read_manifest(pristine), share_of(0, of=1))
    assert stems(read_manifest(pristine), share_of(2, of=4)) == every  # shard 1 holds nothing
    assert stems(read_manifest(pristine), share_of(1, of=2)) != every


def test_an_interrupted_run_is_no_dataset_and_goes_on(pristine: Path, tmp_path: Path) -> None:
    share, to = share_of(0, of=1), tmp_path / "disk"
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
        put_all(pristine, share_of(0, of=1), to)
    with pytest.raises(DamageError, match=rf"{GENERATION}/.* leads by a link to .*outside"):
        list(place.check_placed(Dataset(to, read_manifest(pristine)), share_of(0, of=1)))
    assert list(outside.iterdir()) == []
    assert [path.name for path in to.iterdir()] == [GENERATION]
