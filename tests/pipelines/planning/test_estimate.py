import pytest

from pipelines.planning.estimate import START_SECONDS
from shards.storage.remote import RemotePath
from tests.pipelines.planning.made_sources import made_estimate

FAR = RemotePath("s3://bucket/output")


def test_an_estimate_has_time_memory_disk_and_what_passes_through_beam() -> None:
    made = made_estimate(workers=4)
    assert list(made.phases) == ["map", "dedup", "merge"]
    seconds = [phase.seconds for phase in made.phases.values()]
    assert made.seconds == START_SECONDS + sum(seconds) > 100 * 20 / 4
    assert made.worker_bytes > 1e9
    assert made.driver_bytes > 1e9
    assert 100 * 100 < made.beam_bytes < 100 * 1000
    assert made_estimate(200, shards=64).beam_bytes > 1.5 * made.beam_bytes
    assert made.disk_bytes == sum(
        (
            made.extent.total("segment_bytes"),
            made.extent.total("shard_bytes"),
            made.extent.other_bytes,
        )
    )


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


def test_slots_of_signatures_take_time_and_memory() -> None:
    signed = 48_000.0 * 1000
    assert "slots" not in made_estimate(1000, signed=signed).phases
    one, four = (
        made_estimate(1000, signed=signed, dedup="minhash", workers=workers) for workers in (1, 4)
    )
    assert one.phases["slots"].seconds == pytest.approx(4 * four.phases["slots"].seconds, rel=0.1)
    assert one.worker_bytes < 2.5e9
    assert one.beam_bytes > made_estimate(1000, workers=1).beam_bytes + one.extent.slot_ranges * 100


def test_memory_of_a_worker_does_not_grow_with_the_corpus() -> None:
    small, large = (made_estimate(splits, dedup="none", shards=splits) for splits in (100, 1000))
    planned = 950 * (large.extent.total("segments") - small.extent.total("segments"))
    assert large.worker_bytes - small.worker_bytes == planned


def test_an_object_storage_takes_time() -> None:
    near, far = (made_estimate(**options) for options in ({}, {"output": FAR}))
    assert not near.extent.remote
    for name, phase in far.phases.items():
        assert near.phases[name].seconds < phase.seconds < 3 * near.phases[name].seconds, name
