"""What runs of made-up sources would take, large ones above all; golden rows have small ones."""

from dataclasses import replace
from typing import Any

import pytest

from pipelines.corpus.options import Options
from pipelines.planning import sizes
from pipelines.planning.estimate import Estimate, estimate
from pipelines.planning.sizes import SourceSize, run_extent, validation_share


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
        rejects=0.0,
        texts=48_000.0 * splits,
        signed=0.0,
        map_seconds=20.0 * splits,
        segment_bytes=66e6 * splits,
        token_bytes=60e6 * splits,
        document_bytes=2e6 * splits,
        table_bytes=2e6 * splits,
    )
    return replace(plain, **changes)


def made_estimate(source: SourceSize, *, workers: int = 64, **options: Any) -> Estimate:
    extent = run_extent({"web": source}, Options(**options))
    return estimate(extent, workers=workers, model_bytes=1e9)


@pytest.mark.parametrize(
    ("documents", "fraction", "share"),
    [
        (48_000, 0.0, 0.0),
        (48_000, 0.01, 0.01),
        (1_600, 0.01, 0.02),  # 32 of them, the least
        (10, 0.01, 0.05),  # the most
    ],
)
def test_the_share_of_validation(documents: int, fraction: float, share: float) -> None:
    assert validation_share(made_source(documents=documents), fraction) == share


def test_memory_of_a_worker_does_not_grow_with_the_corpus() -> None:
    small, large = (
        made_estimate(made_source(splits), dedup="none", shards=splits) for splits in (100, 1000)
    )
    planned = 950 * (large.extent.total("segments") - small.extent.total("segments"))
    assert large.worker_bytes - small.worker_bytes == planned


@pytest.mark.parametrize(
    ("records", "tokens", "segments"),
    [(0, 0, 1), (131_072, 100, 1), (131_073, 100, 2), (1000, 33_554_433, 2), (1e6, 1e6, 8)],
)
def test_a_split_becomes_as_many_segments_as_it_fills(
    records: float, tokens: float, segments: int
) -> None:
    assert sizes.num_segments(records, tokens) == segments
