"""Small segments of made-up documents, for tests of what reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipelines.map.builder import SegmentBuilder
from pipelines.segments.plan import Plan, PlannedSegment
from pipelines.segments.rows import NAME, Verdict
from pipelines.segments.segment import Segment

DTYPE = np.dtype(np.uint16)


@dataclass(frozen=True, kw_only=True)
class Doc:
    """A document after all stages; `reason` says why it was dropped, if it was."""

    order: int
    tokens: Sequence[int] = (1, 2)
    holdout: int = 0
    position: int = 0
    reason: str | None = None


def judged(docs: Sequence[Doc]) -> tuple[pa.RecordBatch, Verdict]:
    """The documents that are kept and those that are dropped, with every column of the stages."""
    lists = [list(doc.tokens) for doc in docs]
    columns = {
        "position": pa.array([doc.position for doc in docs], pa.int64()),
        "length": pa.array([10] * len(docs), pa.int64()),
        "ordinal": pa.array([0] * len(docs), pa.int32()),
        "order": pa.array([doc.order for doc in docs], pa.uint64()),
        "holdout": pa.array([doc.holdout for doc in docs], pa.uint64()),
        "bytes": pa.array([100 + doc.position for doc in docs], pa.int64()),
        "group": pa.array([""] * len(docs), pa.large_string()),
        "prompt": pa.array([""] * len(docs), pa.large_string()),
        "text": pa.array([f"text {doc.position}" for doc in docs], pa.large_string()),
        "id": pa.array([f"id{doc.position}" for doc in docs], pa.large_string()),
        "repaired": pa.array([False] * len(docs), pa.bool_()),
        "language": pa.array(["zh"] * len(docs), pa.large_string()).cast(NAME),
        "score": pa.array([0.9] * len(docs), pa.float32()),
        "tokens": pa.array(lists, pa.large_list(pa.uint16())),
        "prompt_tokens": pa.array([0] * len(docs), pa.int32()),
        "hash_high": pa.array([doc.order for doc in docs], pa.uint64()),
        "hash_low": pa.array([doc.position + 1 for doc in docs], pa.uint64()),
    }
    batch = pa.record_batch(columns)
    reasons = pa.array([doc.reason for doc in docs], pa.string())
    dropped = reasons.is_valid()
    kept = batch.filter(reasons.is_null())
    return kept, Verdict(batch.filter(dropped), reasons.filter(dropped))


def write_segment(
    stem: Path,
    docs: Sequence[Doc],
    *,
    relative: str = "part-1.json",
    dedup: bool = True,
) -> Segment:
    """Write a segment of two batches."""
    segments = SegmentBuilder(relative=relative, dedup=dedup)
    kept, dropped = judged(docs)
    middle = kept.num_rows // 2
    segments.add(kept.slice(0, middle), [dropped])
    segments.add(kept.slice(middle), [])
    return segments.close(stem)


def write_segments(
    work: Path,
    parts: Sequence[Sequence[Doc]],
    *,
    sources: Sequence[str] = (),
) -> Plan:
    """Write a segment of each part where a run has them, and return their saved plan."""
    segments = [
        write_segment(work / "map" / f"s{number}", docs, relative=f"part-{number}.json")
        for number, docs in enumerate(parts)
    ]
    plan = Plan(
        generation="g0001-00000000",
        fingerprint="0" * 64,
        dtype=DTYPE.name,
        texts=False,
        segments=tuple(
            PlannedSegment.of(segment, source)
            for segment, source in zip(segments, sources or ["s"] * len(segments), strict=True)
        ),
    )
    plan.save(work)
    return plan


def random_docs(rng: np.random.Generator, num: int) -> list[Doc]:
    """Documents of 1 to 6 tokens with hashes from anywhere."""
    orders, holdouts = rng.integers(0, 2**64 - 1, (2, num), np.uint64, endpoint=True).tolist()
    return [
        Doc(
            order=order,
            holdout=holdout,
            tokens=rng.integers(0, 1000, rng.integers(1, 7)).tolist(),
            position=position,
        )
        for position, (order, holdout) in enumerate(zip(orders, holdouts, strict=True))
    ]
