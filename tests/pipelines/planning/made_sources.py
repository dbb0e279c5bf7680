"""Sizes of made-up sources."""

from dataclasses import replace
from typing import Any

from pipelines.corpus.options import Options
from pipelines.planning.estimate import Estimate, estimate
from pipelines.planning.sizes import Extent, SourceSize, run_extent

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


def made_extent(splits: int = 100, *, signed: float = 0.0, **options: Any) -> Extent:
    """The run of a made-up source."""
    return run_extent({"web": made_source(splits, signed=signed)}, Options(**options))


def made_estimate(
    splits: int = 100, *, workers: int = 64, signed: float = 0.0, **options: Any
) -> Estimate:
    """What the run of a made-up source takes."""
    extent = made_extent(splits, signed=signed, **options)
    return estimate(extent, workers=workers, model_bytes=1e9)
