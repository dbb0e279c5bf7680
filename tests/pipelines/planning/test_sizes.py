from typing import Any

import pytest

from pipelines.merge.group import MOST_SLICES
from pipelines.planning.sizes import (
    cut_sources,
    expected_shards,
    num_segments,
    validation_share,
    with_groups,
)
from shards.storage.remote import RemotePath
from tests.pipelines.planning.made_sources import made_extent, made_source

FAR = RemotePath("s3://bucket/output")


def test_the_extent_of_a_run_follows_from_its_sources() -> None:
    extent = made_extent(dedup="none")
    assert extent.count("segments") == extent.count("splits") == 100
    assert extent.sources["web"].shards == 32
    assert extent.sources["web"].held_shards == 1
    assert extent.slices == 100 * 33
    assert extent.total("tokens") == 3e9


def test_signatures_for_later_generations_take_space() -> None:
    signed = 48_000.0 * 100
    exact, local, components = (
        made_extent(signed=signed, **kind)
        for kind in ({}, {"dedup": "minhash"}, {"dedup": "minhash", "clusters": "components"})
    )
    assert local.slot_ranges == 16
    assert local.slot_slices == 16 * 100
    assert local.other_bytes - exact.other_bytes == signed * (14 * 16 + 8 + 112)
    assert components.slot_slices == 0
    assert components.other_bytes == exact.other_bytes


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


def test_sizes_grow_in_proportion_to_the_corpus() -> None:
    small, large = (made_extent(splits, shards=128, dedup="none") for splits in (100, 1000))
    for name in ("segment_bytes", "shard_bytes", "merge_slices"):
        assert large.total(name) == pytest.approx(10 * small.total(name)), name
    assert large.other_bytes == pytest.approx(10 * small.other_bytes)


@pytest.mark.parametrize(
    ("splits", "options", "groups"),
    [
        (100, {}, 0),
        (100_000, {}, 100_000 // 80),
        (2000, {"dedup": "none", "shards": 512}, 0),
        (2000, {"dedup": "none", "shards": 512, "output": FAR}, 25),
        (2000, {"dedup": "none", "shards": 32, "output": FAR}, 0),
    ],
    ids=["few", "very many", "short", "short behind a URL", "long behind a URL"],
)
def test_slices_that_are_many_or_short_are_read_from_groups(
    splits: int, options: dict[str, Any], groups: int
) -> None:
    extent = made_extent(splits, **options)
    grouped = with_groups(extent)
    assert (grouped is extent) == (not groups)
    assert grouped.count("segments") == (groups or splits)
    assert (extent.slices > MOST_SLICES) == (splits == 100_000)
    assert grouped.total("segment_bytes") == pytest.approx(extent.total("segment_bytes"), rel=0.01)


def test_groups_are_cut_into_ranges_where_shards_are_many() -> None:
    extent = with_groups(made_extent(640_000, shards=65_536))
    source, cut = extent.sources["web"], cut_sources(extent)["web"]
    assert source.segments == 8000
    assert (cut.ranges, cut.range.segments) == (128, -(-8000 // 128))
    assert cut.slices == 8000 * 128
    rows = cut.range.records / cut.range.segments
    assert rows == pytest.approx(source.records / 8000, rel=0.02), "as a group"
    assert cut.range.merge_slices == cut.range.segments * source.merge_tasks


@pytest.mark.parametrize("terabytes", [0.1, 1, 10, 100, 200])
def test_the_slices_of_merge_grow_no_faster_than_the_corpus(terabytes: float) -> None:
    extent = with_groups(made_extent(round(6700 * terabytes), output=FAR, shard_tokens=400_000_000))
    cuts = cut_sources(extent)
    slices = sum(cut.slices for cut in cuts.values())
    merged = (cuts["web"].range if cuts else extent.sources["web"]).merge_slices
    assert slices + merged < 100_000 + 100_000 * terabytes
    assert merged < 100_000 or extent.total("records") / merged > 1000
