"""What runs of made-up sources would take, large ones above all; golden rows have small ones."""

from dataclasses import replace
from typing import Any

import pytest

from pipelines.corpus.options import Options
from pipelines.planning import sizes
from pipelines.planning.estimate import Estimate, estimate
from pipelines.planning.sizes import SourceSize, run_extent
from pipelines.planning.table import bytes_text, duration_text, plan_lines
from shards.storage.remote import RemotePath

FAR = RemotePath("s3://bucket/output")
ROW_BYTES = {"documents": 40.0, "audit": 28.0, "holdout": 20.0, "hashes": 29.0}


def made_source(splits: int = 100, **changes: Any) -> SourceSize:
    """A source of full segments, one a split."""
    plain = SourceSize(
        share=0.1,
        files=splits,
        stored_bytes=splits * (128 << 20),
        splits=splits,
        segments=splits,
        records=50_000.0 * splits,
        documents=48_000.0 * splits,
        tokens=30e6 * splits,
        token_bytes=2,
        rejects=0.0,
        texts=48_000.0 * splits,
        signed=0.0,
        map_seconds=20.0 * splits,
        audit_bytes=2e6 * splits,
        kept_bytes=0.0,
        example_bytes=0.0,
        row_bytes=ROW_BYTES,
    )
    return replace(plain, **changes)


def made_estimate(source: SourceSize, *, workers: int = 64, **options: Any) -> Estimate:
    extent = run_extent({"web": source}, Options(**options))
    return estimate(extent, workers=workers, model_bytes=1e9)


def test_more_workers_take_less_time() -> None:
    one, four, many = (made_estimate(made_source(), workers=n).phases for n in (1, 4, 1000))
    assert one["map"] == pytest.approx(4 * four["map"])
    assert many["map"] >= 20, "a split has one worker"
    assert all(one[name] >= four[name] for name in one)


def test_memory_of_a_worker_does_not_grow_with_the_corpus() -> None:
    small, large = (
        made_estimate(made_source(splits), dedup="none", shards=splits) for splits in (100, 1000)
    )
    planned = 950 * (large.extent.total("segments") - small.extent.total("segments"))
    assert large.worker_bytes - small.worker_bytes == planned


def test_an_object_storage_takes_time() -> None:
    near, far = (made_estimate(made_source(), **options) for options in ({}, {"output": FAR}))
    for name, seconds in far.phases.items():
        assert near.phases[name] < seconds < 3 * near.phases[name], name


@pytest.mark.parametrize(
    ("records", "tokens", "segments"),
    [(0, 0, 1), (131_072, 100, 1), (131_073, 100, 2), (1000, 33_554_433, 2), (1e6, 1e6, 8)],
)
def test_a_split_becomes_as_many_segments_as_it_fills(
    records: float, tokens: float, segments: int
) -> None:
    assert sizes.num_segments(records, tokens) == segments


@pytest.mark.parametrize(
    ("tokens", "shards"), [(0, 1), (100e6, 1), (101e6, 2), (199e6, 4), (300e9, 4096)]
)
def test_shards_are_a_power_of_two(tokens: float, shards: int) -> None:
    assert sizes.expected_shards(made_source(tokens=tokens), 100_000_000) == shards


@pytest.mark.parametrize(
    ("documents", "fraction", "share"),
    [(1e6, 0.001, 0.001), (3200, 0.001, 0.01), (10, 0.001, 0.05), (4.8e6, 0, 0)],
)
def test_validation_is_a_share_of_bounded_size(
    documents: float, fraction: float, share: float
) -> None:
    assert sizes.validation_share(made_source(documents=documents), fraction) == share


@pytest.mark.parametrize(
    ("changes", "options", "hint"),
    [
        ({"splits": 10}, {}, "only 10 of 64 workers have a split to map: choose a smaller --split"),
        ({"rejects": 5e5}, {}, "10 % of the sample cannot be read: more than --max-reject-rate"),
        ({"splits": 640_000}, {"shards": 65_536}, "; segments are merged into fewer first"),
    ],
)
def test_a_plan_has_hints(changes: dict[str, Any], options: dict[str, Any], hint: str) -> None:
    made = made_estimate(made_source(**changes), **options)
    assert hint in "\n".join(plan_lines(made, Options()))


def test_figures_have_a_fitting_unit() -> None:
    durations = {5: "5 s", 600: "10 min", 86_400: "24.0 h", 864_000: "10.0 days"}
    assert {seconds: duration_text(seconds) for seconds in durations} == durations
    assert [bytes_text(count) for count in (5, 2.5e9, 4e15)] == ["5 B", "2.5 GB", "4,000 TB"]
