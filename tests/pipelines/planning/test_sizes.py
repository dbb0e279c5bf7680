import pytest

from pipelines.planning.sizes import (
    cut_source,
    cut_sources,
    expected_shards,
    num_segments,
    validation_share,
    with_groups,
)
from shards.storage.remote import RemotePath
from tests.pipelines.planning.made_sources import made_extent, made_source

FAR = RemotePath("s3://bucket/output")


@pytest.mark.parametrize(
    ("records", "tokens", "segments"),
    [(0, 0, 1), (131_072, 100, 1), (131_073, 100, 2), (1000, 33_554_433, 2), (1e6, 1e6, 8)],
)
def test_a_split_becomes_as_many_segments_as_it_fills(
    records: float, tokens: float, segments: int
) -> None:
    assert num_segments(records, tokens) == segments


@pytest.mark.parametrize(
    ("tokens", "shards"), [(0, 1), (100e6, 1), (101e6, 2), (199e6, 4), (300e9, 4096)]
)
def test_shards_are_a_power_of_two(tokens: float, shards: int) -> None:
    assert expected_shards(made_source(tokens=tokens), 100_000_000) == shards


@pytest.mark.parametrize(
    ("documents", "fraction", "share"),
    [(1e6, 0.001, 0.001), (3200, 0.001, 0.01), (10, 0.001, 0.05), (4.8e6, 0, 0)],
)
def test_validation_is_a_share_of_bounded_size(
    documents: float, fraction: float, share: float
) -> None:
    assert validation_share(made_source(documents=documents), fraction) == share


@pytest.mark.parametrize("terabytes", [0.1, 1, 10, 100, 200])
def test_the_slices_of_merge_grow_no_faster_than_the_corpus(terabytes: float) -> None:
    extent = with_groups(made_extent(round(6700 * terabytes), output=FAR, shard_tokens=400_000_000))
    cuts = cut_sources(extent)
    slices = sum(cut.slices for cut in cuts.values())
    merged = (cuts["web"].range if cuts else extent.sources["web"]).merge_slices
    assert slices + merged < 100_000 + 100_000 * terabytes
    assert merged < 100_000 or extent.total("records") / merged > 1000


def test_passes_follow_each_other() -> None:
    source = made_source(8000, records=4e6 * 8000)
    cut = cut_source(source, (64, 32))
    first = cut_source(source, (64,))
    second = cut_source(first.range, (32,))
    assert (cut.passes, cut.ranges) == (2, 64 * 32)
    assert cut.range == second.range
    assert cut.tasks == first.tasks + 64 * second.tasks
    assert cut.slices == first.slices + 64 * second.slices
    assert cut.range.records == source.records / (64 * 32)
