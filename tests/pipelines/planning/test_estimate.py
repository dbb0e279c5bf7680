from dataclasses import replace

import pytest

from pipelines.corpus.options import Options
from pipelines.planning.estimate import beam_bytes, estimate, phase_seconds, worker_bytes
from pipelines.planning.sizes import run_extent
from tests.pipelines.planning.made_sources import SPLIT, made_source


def test_an_estimate_has_time_memory_and_what_passes_through_beam() -> None:
    extent = run_extent({"web": made_source()}, Options(), token_bytes=2)
    estimated = estimate(extent, workers=4, split=SPLIT, model_bytes=1e9, remote=False)
    assert estimated.all_seconds == sum(estimated.seconds.values()) > 100 * 20 / 4
    assert estimated.worker_bytes > 1e9
    assert estimated.driver_bytes > 1e9
    assert estimated.beam_bytes > 0
    assert not estimated.requests


def test_more_workers_take_less_time() -> None:
    extent = run_extent({"web": made_source()}, Options(), token_bytes=2)
    one, four = (phase_seconds(extent, workers=workers) for workers in (1, 4))
    assert one["map"] == pytest.approx(4 * four["map"])
    assert phase_seconds(extent, workers=1000)["map"] >= 20
    assert all(one[phase] >= four[phase] for phase in one)


def test_making_groups_takes_time() -> None:
    extent = run_extent({"web": made_source(100_000)}, Options(), token_bytes=2)
    assert phase_seconds(extent, workers=64)["group"] > 0


def test_cutting_groups_takes_time_and_memory() -> None:
    extent = run_extent({"web": made_source(640_000)}, Options(shards=65_536), token_bytes=2)
    phases = phase_seconds(extent, workers=1024)
    assert phases["ranges"] == pytest.approx(phases["group"], rel=0.2)
    assert (
        0
        < worker_bytes(extent, remote=False)["ranges"]
        < worker_bytes(extent, remote=True)["ranges"]
    )
    assert beam_bytes(extent, SPLIT) > 640_000 * 200


def test_slots_of_signatures_take_time_and_memory() -> None:
    source = made_source(1000, signed=48_000.0 * 1000)
    exact, near = (
        run_extent({"web": source}, Options(dedup=dedup), token_bytes=2)
        for dedup in ("exact", "minhash")
    )
    assert "slots" not in phase_seconds(exact, workers=4)
    one, four = (phase_seconds(near, workers=workers)["slots"] for workers in (1, 4))
    assert one == pytest.approx(4 * four, rel=0.1)
    assert "slots" not in worker_bytes(exact, remote=False)
    memory = worker_bytes(near, remote=False)
    assert memory["slots"] < 500e6
    assert beam_bytes(near, SPLIT) > beam_bytes(exact, SPLIT) + near.slot_ranges * 24


def test_memory_of_a_worker_does_not_grow_with_the_corpus() -> None:
    plain = Options(dedup="none")
    small, large = (
        run_extent({"web": made_source(splits)}, plain, token_bytes=2) for splits in (100, 1000)
    )
    assert worker_bytes(large, remote=False)["map"] == worker_bytes(small, remote=False)["map"]


def test_bytes_through_beam_are_those_of_the_records_of_tasks() -> None:
    extent = run_extent({"web": made_source()}, Options(dedup="none"), token_bytes=2)
    doubled = run_extent({"web": made_source(200)}, Options(dedup="none", shards=64), token_bytes=2)
    assert 100 * 100 < beam_bytes(extent, SPLIT) < 100 * 1000
    assert beam_bytes(doubled, SPLIT) > 1.5 * beam_bytes(extent, SPLIT)
    many_drops = replace(extent, drop_ranges=1000)
    assert beam_bytes(many_drops, SPLIT) > beam_bytes(extent, SPLIT)
