from dataclasses import replace

import pytest

from pipelines.corpus.options import Options
from pipelines.merge.group import MOST_SLICES
from pipelines.planning.sizes import (
    expected_shards,
    for_merge,
    num_segments,
    passes,
    run_extent,
    share,
    validation_share,
    with_groups,
)
from shards.storage.remote import RemotePath
from tests.pipelines.planning.made_sources import made_source


def test_the_extent_of_a_run_follows_from_its_sources() -> None:
    extent = run_extent({"web": made_source(100)}, Options(dedup="none"), token_bytes=2)
    assert extent.segments == extent.splits == 100
    assert extent.shards == {"web": 32}
    assert extent.validation == {"web": 1}
    assert extent.merge_slices == 100 * 33
    assert extent.total("tokens") == 3e9


def test_signatures_for_later_generations_take_space() -> None:
    source = made_source(100, signed=48_000.0 * 100)
    exact, local, components = (
        run_extent({"web": source}, Options(**kind), token_bytes=2)
        for kind in ({}, {"dedup": "minhash"}, {"dedup": "minhash", "clusters": "components"})
    )
    assert local.slot_ranges == 16
    assert local.slot_slices == 16 * 100
    assert local.other_bytes - exact.other_bytes == source.signed * (14 * 16 + 8 + 112)
    assert local.most_bytes - exact.most_bytes == source.signed * (14 * 16 + 8 + 112)
    assert components.slot_slices == 0
    assert components.most_bytes == exact.most_bytes


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


def test_validation_is_a_share_of_bounded_size() -> None:
    assert validation_share(made_source(documents=1e6), 0.001) == 0.001
    assert validation_share(made_source(documents=3200), 0.001) == 0.01
    assert validation_share(made_source(documents=10), 0.001) == 0.05
    assert validation_share(made_source(), 0) == 0


def test_sizes_grow_in_proportion_to_the_corpus() -> None:
    plain = Options(shards=128, dedup="none")
    small, large = (
        run_extent({"web": made_source(splits)}, plain, token_bytes=2) for splits in (100, 1000)
    )
    for name in ("segment_bytes", "shard_bytes", "other_bytes", "merge_slices"):
        assert getattr(large, name) == pytest.approx(10 * getattr(small, name)), name


def test_very_many_slices_are_read_from_groups() -> None:
    few = run_extent({"web": made_source()}, Options(), token_bytes=2)
    assert with_groups(few) is few
    many = run_extent({"web": made_source(100_000)}, Options(), token_bytes=2)
    assert many.slices > MOST_SLICES
    groups = with_groups(many)
    assert groups.segments == 100_000 // 80
    assert groups.segment_bytes == pytest.approx(many.segment_bytes, rel=0.01)


def test_short_slices_are_read_from_groups_behind_a_url() -> None:
    source = made_source(2000)
    option = Options(dedup="none", shards=512)
    assert (local := run_extent({"web": source}, option, token_bytes=2)) is with_groups(local)
    output = RemotePath("s3://bucket/output")
    extent = run_extent({"web": source}, replace(option, output=output), token_bytes=2)
    assert extent.remote
    assert with_groups(extent).segments == 25
    long = run_extent({"web": source}, replace(option, output=output, shards=32), token_bytes=2)
    assert with_groups(long) is long


def test_groups_are_cut_into_ranges_where_shards_are_many() -> None:
    source = made_source(640_000)
    extent = with_groups(run_extent({"web": source}, Options(shards=65_536), token_bytes=2))
    assert extent.segments == 8000
    (cut,) = extent.cuts["web"]
    (one,) = passes(extent.sources["web"], extent.cuts["web"])
    assert (one.times, one.cut, one.after.segments) == (1, cut, -(-8000 // cut))
    assert one.slices == 8000 * cut
    rows = one.after.records / one.after.segments
    assert rows == pytest.approx(source.records / 8000, rel=0.02), "as a group"
    assert for_merge(extent).merge_slices == one.after.segments * (
        extent.shards["web"] + extent.validation["web"]
    )
    whole = run_extent({"web": source}, Options(shards=65_536), token_bytes=2)
    copies = whole.most_bytes - whole.shard_bytes - whole.other_bytes
    assert copies == pytest.approx(3 * whole.segment_bytes, rel=0.01), "segments, groups, ranges"


@pytest.mark.parametrize("terabytes", [0.1, 1, 10, 100, 200])
def test_the_slices_of_merge_grow_no_faster_than_the_corpus(terabytes: float) -> None:
    output = RemotePath("s3://bucket/output")
    option = Options(output=output, shard_tokens=400_000_000)
    source = made_source(round(6700 * terabytes))
    extent = with_groups(run_extent({"web": source}, option, token_bytes=2))
    slices = sum(
        step.slices
        for name, cuts in extent.cuts.items()
        for step in passes(extent.sources[name], cuts)
    )
    merged = for_merge(extent)
    assert slices + merged.merge_slices < 100_000 + 100_000 * terabytes
    assert merged.merge_slices < 100_000 or source.records / merged.merge_slices > 1000


def test_passes_follow_each_other() -> None:
    source = made_source(8000, records=4e6 * 8000)
    first, second = passes(source, (64, 32))
    assert second.times == 64
    assert second.before == first.after
    assert second.tasks == 64 * 32 * second.after.segments
    assert share(source, 4).tokens == source.tokens / 4
