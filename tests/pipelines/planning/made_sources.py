"""Sizes of made-up sources."""

from dataclasses import replace
from typing import Any

from pipelines.inputs.split import Split
from pipelines.planning.sizes import SourceSize

ROW_BYTES = {"documents": 40.0, "audit": 28.0, "holdout": 20.0, "hashes": 29.0}
SPLIT = Split(
    source="web",
    path="/data/web/a.json",
    relative="a.json",
    file_bytes=1,
    start=0,
    end=1,
    mtime_ns=1,
)


def made_source(splits: int = 100, **changes: Any) -> SourceSize:
    """A source of full segments, one a split."""
    plain = SourceSize(
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
        audit_bytes=2e6 * splits,
        kept_bytes=0.0,
        example_bytes=0.0,
        row_bytes=ROW_BYTES,
        tables={},
    )
    return replace(plain, **changes)
