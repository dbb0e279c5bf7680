import pytest

from shards.storage.remote import RemotePath
from tests.pipelines.planning.made_sources import made_estimate

FAR = RemotePath("s3://bucket/output")


def test_more_workers_take_less_time() -> None:
    one, four, many = (made_estimate(workers=workers).phases for workers in (1, 4, 1000))
    assert one["map"].seconds == pytest.approx(4 * four["map"].seconds)
    assert many["map"].seconds >= 20, "a split has one worker"
    assert all(one[name].seconds >= four[name].seconds for name in one)


def test_groups_and_ranges_take_time_memory_and_space() -> None:
    grouped = made_estimate(100_000, shards=1024)
    assert list(grouped.phases) == ["map", "group", "dedup", "merge"]
    size = grouped.extent.total("segment_bytes")
    others = grouped.extent.total("shard_bytes") + grouped.extent.other_bytes
    assert grouped.disk_bytes == pytest.approx(2 * size + others)
    near, far = (
        made_estimate(640_000, shards=65_536, workers=1024, **options)
        for options in ({}, {"output": FAR})
    )
    assert near.phases["ranges"].seconds == pytest.approx(near.phases["group"].seconds, rel=0.2)
    assert 0 < near.worker_bytes < far.worker_bytes
    assert near.beam_bytes > 640_000 * 200
    copies = near.disk_bytes - near.extent.total("shard_bytes") - near.extent.other_bytes
    assert copies == pytest.approx(3 * near.extent.total("segment_bytes")), "segments, both copies"


def test_memory_of_a_worker_does_not_grow_with_the_corpus() -> None:
    small, large = (made_estimate(splits, dedup="none", shards=splits) for splits in (100, 1000))
    planned = 950 * (large.extent.total("segments") - small.extent.total("segments"))
    assert large.worker_bytes - small.worker_bytes == planned


def test_an_object_storage_takes_time() -> None:
    near, far = (made_estimate(**options) for options in ({}, {"output": FAR}))
    assert not near.extent.remote
    for name, phase in far.phases.items():
        assert near.phases[name].seconds < phase.seconds < 3 * near.phases[name].seconds, name
