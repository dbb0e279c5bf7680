"""What a run would take: disk, bytes through Beam, memory, time. Arithmetic alone.

The rates are of one process that is never idle; where each was measured stands beside it.
"""

import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.dedup.exact import ROWS_PER_TASK
from pipelines.dedup.phases import BAND_ROWS_PER_TASK
from pipelines.dedup.tasks import DedupTask
from pipelines.inputs.split import Split
from pipelines.map.builder import MAX_HELD_BYTES, MAX_RECORDS, MAX_TOKENS
from pipelines.map.mapper import MapTask
from pipelines.merge.merge import BYTES_AT_ONCE, ROWS_AT_ONCE
from pipelines.merge.tasks import MergeTask
from pipelines.planning.requests import Requests, requests
from pipelines.planning.sizes import Extent, SourceSize, grouped

START_SECONDS = 4.0
"""Until the first task of a run runs: Python, Beam, models."""

TASK_SECONDS = 0.15
"""Of a task in Beam besides its work."""

TEXT_ROWS_A_SECOND, BAND_ROWS_A_SECOND = 1_200_000, 1_300_000
"""Rows that dedup reads, sorts and compares: `make bench ARGS="--only dedup"`."""

MERGED_BYTES_A_SECOND = 60e6
"""Of segments that merge reads, per second: `make bench ARGS="--only plan"`."""

WAIT_SECONDS = 0.03
"""Until a request of an object storage is answered."""

AT_ONCE, BESIDE = 16, ("dedup", "merge")
"""Requests of a task that wait side by side, and the phases where they do."""

FETCHED_BYTES_A_SECOND = 100e6
"""Of an object storage, by one worker."""

IDLE_BYTES = 180e6
"""A worker that has done nothing, Beam and Arrow loaded."""

RECORD_BYTES, SEGMENT_RECORD_BYTES = 3_000, 1_800
"""What the driver holds of a split, and of a segment with its sums."""

PLANNED_BYTES = 950
"""A segment in the plan, which every worker reads: its JSON (224) and what is made of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run takes."""

    extent: Extent
    workers: int
    seconds: Mapping[str, float]
    """By phase."""
    beam_bytes: float
    """Records of tasks, pickled: all that passes through Beam."""
    worker_bytes: float
    """Most memory of a worker."""
    driver_bytes: float
    """Most memory of the process that hands out tasks."""
    requests: Mapping[str, Requests]
    """By phase, if the output is behind a URL."""

    @property
    def all_seconds(self) -> float:
        """Seconds of the whole run."""
        return sum(self.seconds.values())


def estimate(
    extent: Extent, *, workers: int, split: Split, model_bytes: float, remote: bool
) -> Estimate:
    """Return what a run takes.

    Args:
        extent: How large it is.
        workers: Processes.
        split: One of its splits: what a task's record is like.
        model_bytes: Of tokenizer, language model and the like, in each worker.
        remote: The output is behind a URL.
    """
    seconds = phase_seconds(extent, workers=workers)
    asked: Mapping[str, Requests] = {}
    if remote:
        asked = requests(extent, workers=workers, seconds=sum(seconds.values()))
        for phase, found in asked.items():
            if phase in seconds:
                waiting = found.all * WAIT_SECONDS / (AT_ONCE if phase in BESIDE else 1)
                waiting += found.bytes / FETCHED_BYTES_A_SECOND
                seconds[phase] += waiting / max(workers, 1)
        asked = requests(extent, workers=workers, seconds=sum(seconds.values()))
    return Estimate(
        extent=extent,
        workers=workers,
        seconds=seconds,
        beam_bytes=beam_bytes(extent, split),
        worker_bytes=IDLE_BYTES
        + model_bytes
        + grouped(extent).segments * PLANNED_BYTES
        + max(worker_bytes(extent, remote=remote).values()),
        driver_bytes=IDLE_BYTES + model_bytes + driver_bytes(extent),
        requests=asked,
    )


def phase_seconds(extent: Extent, *, workers: int) -> dict[str, float]:
    """Return how long each phase works if no worker waits for another, but at its end."""
    processes = max(workers, 1)
    rows = extent.total("texts") / TEXT_ROWS_A_SECOND if extent.text_ranges else 0.0
    if extent.band_ranges:
        rows += 14 * extent.total("signed") / BAND_ROWS_A_SECOND
    work = {
        "map": (extent.total("map_seconds"), extent.splits),
        "dedup": (rows, extent.dedup_tasks + extent.drop_ranges),
        "merge": (extent.segment_bytes / MERGED_BYTES_A_SECOND, extent.merge_tasks),
    }
    later = grouped(extent)
    if later is not extent:
        work["group"] = (2 * extent.segment_bytes / MERGED_BYTES_A_SECOND, later.segments)
    found = {"start": START_SECONDS}
    for phase, (seconds, tasks) in work.items():
        rounds = math.ceil(tasks / processes)
        found[phase] = rounds * (seconds / max(tasks, 1) + TASK_SECONDS) if tasks else 0.0
    return found


def beam_bytes(extent: Extent, split: Split) -> float:
    """Return the bytes of all tasks' records."""
    name = "0" * 24
    shards = max(1, sum(extent.shards.values()))
    # A shard is told of the files of drops whose orders it may have.
    drops = tuple(f"drops/{at:024}" for at in range(1 + extent.drop_ranges // shards))
    mapped = MapTask(name=name, split=split)
    dedup = DedupTask(
        name=name, plan=name, band=0, index=0, ranges=1, threshold=0.7, drops=True, linked=0
    )
    merge = MergeTask(
        name=name, plan=name, source=split.source, split="train", index=0, total=1, holdout=2**63,
        drops=drops,
    )  # fmt: skip
    pairs = (
        (mapped, extent.splits),
        (dedup, extent.dedup_tasks + extent.drop_ranges),
        (merge, extent.merge_tasks),
    )
    return float(sum(len(pickle.dumps(task)) * number for task, number in pairs))


def worker_bytes(extent: Extent, *, remote: bool) -> dict[str, float]:
    """Return the most memory that a task of each phase takes, by phase."""
    found = {"map": 0.0, "dedup": 0.0, "merge": 0.0}
    for name, source in extent.sources.items():
        found["map"] = max(found["map"], _segment_bytes(source, extent.token_bytes))
        found["merge"] = max(
            found["merge"], _shard_bytes(source, extent.shards[name], extent.token_bytes, remote)
        )
    if extent.text_ranges:
        rows = min(extent.total("texts") / extent.text_ranges, ROWS_PER_TASK)
        found["dedup"] = 60 * rows
    if extent.band_ranges:
        rows = extent.total("signed") / extent.band_ranges
        found["dedup"] = max(found["dedup"], 30 * max(rows, min(rows, BAND_ROWS_PER_TASK)))
    return found


def _segment_bytes(source: SourceSize, token_bytes: int) -> float:
    """Return what a worker holds to write a full segment: tokens twice, rows three times."""
    tokens = min(MAX_TOKENS, source.tokens / source.segments)
    rows = min(MAX_RECORDS, source.records / source.segments)
    width = source.row_bytes.get("documents", 0.0) + source.row_bytes.get("audit", 0.0)
    kept = min(source.kept_bytes / source.segments, MAX_HELD_BYTES)
    return 2 * tokens * token_bytes + 3 * rows * width + kept


def _shard_bytes(source: SourceSize, shards: int, token_bytes: int, remote: bool) -> float:
    """Return what a worker holds to write a shard: its rows three times, of a URL its tokens."""
    rows = source.documents / shards * source.row_bytes.get("documents", 0.0)
    audit = min(source.records / shards, ROWS_AT_ONCE) * 3 * source.row_bytes.get("audit", 0.0)
    tokens = source.tokens / shards * token_bytes if remote else 0.0
    return max(3 * rows + tokens, audit + min(source.kept_bytes / shards, BYTES_AT_ONCE))


def driver_bytes(extent: Extent) -> float:
    """Return what the driver holds of records and plan."""
    records = extent.splits * RECORD_BYTES + extent.segments * SEGMENT_RECORD_BYTES
    return records + (extent.segments + grouped(extent).segments) * PLANNED_BYTES
