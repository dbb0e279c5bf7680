"""What a run takes: disk, bytes through Beam, memory, time. Arithmetic, but for the requests.

Rates are those of one process that is never idle; each constant says where it was measured.
"""

import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipelines.dedup.exact import ROWS_PER_TASK
from pipelines.dedup.minhash import NUM_BANDS
from pipelines.dedup.tasks import Task
from pipelines.inputs.split import Split
from pipelines.map.builder import MAX_HELD_BYTES, MAX_RECORDS, MAX_TOKENS
from pipelines.map.mapper import MapTask
from pipelines.merge.ranges import RangeTask
from pipelines.merge.tasks import MergeTask
from pipelines.merge.union import TOKEN_BYTES_AT_ONCE
from pipelines.planning.requests import count_requests, polling_requests
from pipelines.planning.sizes import (
    BAND_ROW_BYTES,
    Extent,
    SourceSize,
    passes,
    row_width,
    with_groups,
)
from pipelines.planning.storage import Requests
from shards.range import BYTES_AT_ONCE, ROWS_AT_ONCE

START_SECONDS = 4.0
"""From the command to the first task: Python, Beam, models."""

TASK_SECONDS = 0.15
"""Beam's overhead for a task."""

TEXT_ROWS_A_SECOND, BAND_ROWS_A_SECOND = 1_200_000, 1_300_000
"""Rows that dedup reads, sorts and compares: `make bench ARGS="--only dedup"`."""

SLOT_ROWS_A_SECOND = 1_000_000
"""Rows that tasks of slots write: 40 segments of 100,000 signers, ranges of 2 million."""

MERGED_BYTES_A_SECOND = 60e6
"""Bytes of segments that merge reads: `make bench ARGS="--only plan"`."""

WAIT_SECONDS = 0.03
"""Until an object storage answers a request."""

AT_ONCE, BESIDE = 16, ("group", "dedup", "slots", "ranges", "merge")
"""Requests that a task has under way at a time, and the phases whose tasks do so."""

FETCHED_BYTES_A_SECOND = 100e6
"""Bytes that one worker fetches from an object storage."""

BAND_ROW_MEMORY, SLOT_ROW_MEMORY = 70, 340
"""Bytes that a task takes for a row of a band, and for a row of slots: ranges of 2 million rows."""

IDLE_BYTES = 180e6
"""Memory of a worker that has done nothing yet, with Beam and Arrow loaded."""

RECORD_BYTES, SEGMENT_RECORD_BYTES = 3_000, 1_800
"""Memory in the driver for a split, and for a segment with its sums."""

PLANNED_BYTES = 950
"""Memory for a segment of the plan, which every worker reads: its JSON (224) and the objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run takes."""

    extent: Extent
    workers: int
    seconds: Mapping[str, float]
    """By phase."""
    beam_bytes: float
    """Pickled records of tasks: all that passes through Beam."""
    worker_bytes: float
    """Peak memory of a worker."""
    driver_bytes: float
    """Peak memory of the process that hands out tasks."""
    requests: Mapping[str, Requests]
    """By phase; empty unless the output is behind a URL."""

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
        split: One of its splits, as an example of what a task's record holds.
        model_bytes: Memory of tokenizer, language model and the like in each worker.
        remote: The output is behind a URL.
    """
    seconds = phase_seconds(extent, workers=workers)
    requests: dict[str, Requests] = {}
    if remote:
        requests = count_requests(extent, workers=workers)
        for phase in requests.keys() & seconds.keys():
            waiting = requests[phase].all * WAIT_SECONDS / (AT_ONCE if phase in BESIDE else 1)
            waiting += requests[phase].bytes / FETCHED_BYTES_A_SECOND
            seconds[phase] += waiting / max(workers, 1)
        requests["the rest"] += polling_requests(extent, seconds=sum(seconds.values()))
    return Estimate(
        extent=extent,
        workers=workers,
        seconds=seconds,
        beam_bytes=beam_bytes(extent, split),
        worker_bytes=IDLE_BYTES
        + model_bytes
        + with_groups(extent).segments * PLANNED_BYTES
        + max(worker_bytes(extent, remote=remote).values()),
        driver_bytes=IDLE_BYTES + model_bytes + driver_bytes(extent),
        requests=requests,
    )


def phase_seconds(extent: Extent, *, workers: int) -> dict[str, float]:
    """Return the seconds of each phase if workers wait for each other only at its end."""
    processes = max(workers, 1)
    dedup_seconds = extent.total("texts") / TEXT_ROWS_A_SECOND if extent.text_ranges else 0.0
    if extent.band_ranges:
        dedup_seconds += NUM_BANDS * extent.total("signed") / BAND_ROWS_A_SECOND
    work = {
        "map": (extent.total("map_seconds"), extent.splits),
        "dedup": (dedup_seconds, extent.dedup_tasks + extent.drop_ranges),
        "merge": (extent.segment_bytes / MERGED_BYTES_A_SECOND, extent.merge_tasks),
    }
    later = with_groups(extent)
    if later is not extent:
        work["group"] = (2 * extent.segment_bytes / MERGED_BYTES_A_SECOND, later.segments)
    if later.cuts:
        copied, tasks = copied_by_ranges(later)
        work["ranges"] = (2 * copied / MERGED_BYTES_A_SECOND, tasks)
    if extent.slot_ranges:
        work["slots"] = (extent.total("signed") / SLOT_ROWS_A_SECOND, extent.slot_ranges)
    phases = {"start": START_SECONDS}
    for phase, (seconds, tasks) in work.items():
        rounds = math.ceil(tasks / processes)
        phases[phase] = rounds * (seconds / max(tasks, 1) + TASK_SECONDS) if tasks else 0.0
    return phases


def copied_by_ranges(extent: Extent) -> tuple[float, int]:
    """Return the bytes that all passes of ranges read, and their tasks."""
    copied, tasks = 0.0, 0
    for name, cuts in extent.cuts.items():
        source = extent.sources[name]
        copied += len(cuts) * replace(extent, sources={name: source}).segment_bytes
        tasks += sum(step.tasks for step in passes(source, cuts))
    return copied, tasks


def beam_bytes(extent: Extent, split: Split) -> float:
    """Return the bytes of all tasks' records."""
    name = "0" * 24
    shards = max(1, sum(extent.shards.values()))
    # The task of a shard names the drop files that may hold its orders.
    drops = tuple(f"drops/{index:024}" for index in range(1 + extent.drop_ranges // shards))
    map_task = MapTask(name=name, split=split)
    dedup_task = Task(name=name, phase="dedup", plan=name, band=0, threshold=0.7)
    merge_task = MergeTask(
        name=name, plan=name, source=split.source, split="train", index=0, total=1, holdout=2**63,
        drops=drops,
    )  # fmt: skip
    range_task = RangeTask(
        name=name, plan=name, numbers=tuple(range(2**16, 2**16 + 100)), index=0, total=1,
        drops=drops,
    )  # fmt: skip
    slots_task = Task(name=name, phase="slots", plan=name, inputs=drops)
    pairs = (
        (slots_task, extent.slot_ranges),
        (range_task, copied_by_ranges(with_groups(extent))[1]),
        (map_task, extent.splits),
        (dedup_task, extent.dedup_tasks + extent.drop_ranges),
        (merge_task, extent.merge_tasks),
    )
    return float(sum(len(pickle.dumps(task)) * number for task, number in pairs))


def worker_bytes(extent: Extent, *, remote: bool) -> dict[str, float]:
    """Return the peak memory of a task of each phase, by phase."""
    peaks = {"map": 0.0, "dedup": 0.0, "merge": 0.0}
    for name, source in extent.sources.items():
        peaks["map"] = max(peaks["map"], _segment_bytes(source, extent.token_bytes))
        peaks["merge"] = max(
            peaks["merge"], _shard_bytes(source, extent.shards[name], extent.token_bytes, remote)
        )
    later = with_groups(extent)
    if later is not extent:
        peaks["group"] = max(_union_bytes(source, remote) for source in later.sources.values())
    for name, cuts in later.cuts.items():
        after = replace(passes(later.sources[name], cuts)[0].after, signed=0.0)
        peaks["ranges"] = max(peaks.get("ranges", 0.0), _union_bytes(after, remote))
    if extent.text_ranges:
        rows = min(extent.total("texts") / extent.text_ranges, ROWS_PER_TASK)
        peaks["dedup"] = 60 * rows
    if extent.band_ranges:
        rows = extent.total("signed") / extent.band_ranges
        peaks["dedup"] = max(peaks["dedup"], BAND_ROW_MEMORY * rows)
    if extent.slot_ranges:
        peaks["slots"] = SLOT_ROW_MEMORY * extent.total("signed") / extent.slot_ranges
    return peaks


def _segment_bytes(source: SourceSize, token_bytes: int) -> float:
    """Return a worker's memory for writing a full segment: tokens twice, rows three times."""
    tokens = min(MAX_TOKENS, source.tokens / source.segments)
    rows = min(MAX_RECORDS, source.records / source.segments)
    width = source.row_bytes.get("documents", 0.0) + source.row_bytes.get("audit", 0.0)
    kept = min(source.kept_bytes / source.segments, MAX_HELD_BYTES)
    return 2 * tokens * token_bytes + 3 * rows * width + kept


def _union_bytes(source: SourceSize, remote: bool) -> float:
    """Return a worker's memory for a group or range: its longest table, or the signatures.

    Behind a URL what is fetched and what is uploaded come on top: 4.7 times a table of 4 million
    rows was measured.
    """
    table = source.records / source.segments * row_width(source) * (5 if remote else 2)
    held = BAND_ROW_BYTES - 8  # the orders of a band are written from those of the signers
    bands = source.signed / source.segments * NUM_BANDS * held * (3 if remote else 2)
    return max(table, bands, 2.0 * TOKEN_BYTES_AT_ONCE if remote else 0.0)


def _shard_bytes(source: SourceSize, shards: int, token_bytes: int, remote: bool) -> float:
    """Return a worker's memory for writing a shard: rows three times, behind a URL also tokens."""
    rows = source.documents / shards * source.row_bytes.get("documents", 0.0)
    audit = min(source.records / shards, ROWS_AT_ONCE) * 3 * source.row_bytes.get("audit", 0.0)
    tokens = source.tokens / shards * token_bytes if remote else 0.0
    return max(3 * rows + tokens, audit + min(source.kept_bytes / shards, BYTES_AT_ONCE))


def driver_bytes(extent: Extent) -> float:
    """Return the driver's memory for records and plan."""
    records = extent.splits * RECORD_BYTES + extent.segments * SEGMENT_RECORD_BYTES
    later = with_groups(extent)
    planned = extent.segments + later.segments + copied_by_ranges(later)[1]
    return records + planned * PLANNED_BYTES
