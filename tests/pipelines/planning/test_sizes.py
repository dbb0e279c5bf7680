import pytest

from pipelines.corpus.options import Options
from pipelines.merge.group import MOST_SLICES
from pipelines.planning.sizes import (
    expected_shards,
    num_segments,
    run_extent,
    validation_share,
    with_groups,
)
from tests.pipelines.planning.made_sources import made_source


def test_the_extent_of_a_run_follows_from_its_sources() -> None:
    extent = run_extent({"web": made_source(100)}, Options(dedup="none"), token_bytes=2)
    assert extent.segments == extent.splits == 100
    assert extent.shards == {"web": 32}
    assert extent.validation == {"web": 1}
    assert extent.merge_slices == 100 * 33
    assert extent.total("tokens") == 3e9


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
