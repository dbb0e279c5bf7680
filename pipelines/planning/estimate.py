"""What a run takes: time, memory, disk. Arithmetic alone.

Rates are those of one process that is never idle; each constant says where it was measured.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.dedup.minhash import NUM_BANDS
from pipelines.merge.ranges import BYTES_PER_RANGE
from pipelines.planning.sizes import Extent, SourceSize

START_SECONDS = 4.0
"""From the command to the first task: Python, Beam, models."""

TASK_SECONDS = 0.15
"""Beam's overhead for a task."""

TEXT_ROWS_A_SECOND, BAND_ROWS_A_SECOND, SLOT_ROWS_A_SECOND = 1_200_000, 1_300_000, 1_000_000
"""Rows that dedup reads, sorts and compares: `make bench ARGS="--only dedup"`."""

MERGED_BYTES_A_SECOND = 60e6
"""Bytes of segments that merge reads."""

FETCHED_BYTES_A_SECOND = 100e6
"""Bytes that one worker fetches from an object storage."""

WAIT_SECONDS: Mapping[str, float] = {"map": 0.66, "dedup": 0.006, "merge": 0.03}
"""How long a worker waits for an object storage: for a segment that is mapped, for a slice that
later phases read. A request is answered after 0.03 s, and after the map 16 are under way at a time.
Requests were counted in November 2026 on an S3 server: 22 a segment, 3 a slice of dedup, 16 one of
merge."""

TEXT_ROW_MEMORY, BAND_ROW_MEMORY, SLOT_ROW_MEMORY = 60, 70, 340
"""Bytes that a task takes for a text, a row of a band, a row of slots: ranges of 2 million rows."""

COPIES = 3
"""How often a task holds the rows that it writes, before they are sorted and after."""

IDLE_BYTES = 180e6
"""Memory of a worker that has done nothing yet, with Beam and Arrow loaded."""

RECORD_BYTES, SEGMENT_BYTES = 3_000, 2_750
"""Memory in the driver for a task of the map, and for a segment with its sums and its place in the
plan."""

FILE_BYTES = 3_000
"""Memory in the driver for an input file: its name, its split, its entries in the manifest and in
inputs.json (a run over 100,000 files of a line)."""

PLANNED_BYTES = 950
"""Memory in a worker for a segment of the plan: its JSON (224) and the objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run takes."""

    extent: Extent
    phases: Mapping[str, float]
    """Seconds of each phase, in the order of the run."""
    workers: int
    disk_bytes: float
    """All files that exist at once before the end."""
    worker_bytes: float
    """Peak memory of a worker."""
    driver_bytes: float
    """Peak memory of the process that hands out tasks."""

    @property
    def seconds(self) -> float:
        """Of the whole run."""
        return START_SECONDS + sum(self.phases.values())


def estimate(extent: Extent, *, workers: int, model_bytes: float) -> Estimate:
    """Return what a run takes.

    Args:
        extent: How large it is.
        workers: Processes, at least 1.
        model_bytes: Memory of tokenizer, language model and the like in each worker.
    """
    segments, idle = extent.count("segments"), IDLE_BYTES + model_bytes
    copies = extent.total("segment_bytes") + extent.rewritten_bytes
    return Estimate(
        extent=extent,
        phases=phase_seconds(extent, workers=workers),
        workers=workers,
        disk_bytes=copies + extent.total("shard_bytes") + extent.other_bytes,
        worker_bytes=idle + segments * PLANNED_BYTES + _task_memory(extent),
        driver_bytes=idle
        + extent.count("files") * FILE_BYTES
        + extent.count("tasks") * RECORD_BYTES
        + segments * SEGMENT_BYTES,
    )


def phase_seconds(extent: Extent, *, workers: int) -> dict[str, float]:
    """Return how long each phase of a run takes, in their order."""
    segments, signed = extent.count("segments"), extent.total("signed")
    dedup, merge = extent.dedup_tasks, extent.count("merge_tasks")
    merged_bytes = extent.total("segment_bytes") + 2 * extent.rewritten_bytes
    tasks = {"map": extent.count("tasks"), "dedup": dedup, "merge": merge}
    work = {
        "map": extent.total("map_seconds"),
        "dedup": extent.total("texts") / TEXT_ROWS_A_SECOND
        + NUM_BANDS * signed / BAND_ROWS_A_SECOND
        + signed / SLOT_ROWS_A_SECOND,
        "merge": merged_bytes / MERGED_BYTES_A_SECOND,
    }
    if extent.remote:
        work["map"] += segments * WAIT_SECONDS["map"]
        work["dedup"] += segments * dedup * WAIT_SECONDS["dedup"]
        work["merge"] += extent.merge_slices * WAIT_SECONDS["merge"]
        work["merge"] += merged_bytes / FETCHED_BYTES_A_SECOND
    return {
        name: math.ceil(number / workers) * (work[name] / max(number, 1) + TASK_SECONDS)
        for name, number in tasks.items()
    }


def _task_memory(extent: Extent) -> float:
    """Return the bytes that the largest task takes, an idle worker aside."""
    signed, sources = extent.total("signed"), extent.sources.values()
    return max(
        *(COPIES * source.segment_bytes / source.segments for source in sources),
        *(_shard_memory(source, extent.remote) for source in sources),
        TEXT_ROW_MEMORY * extent.total("texts") / (extent.text_ranges or math.inf),
        BAND_ROW_MEMORY * signed / (extent.band_ranges or math.inf),
        SLOT_ROW_MEMORY * signed / (extent.slot_ranges or math.inf),
        2 * min(BYTES_PER_RANGE, extent.rewritten_bytes),
    )


def _shard_memory(source: SourceSize, remote: bool) -> float:
    """Return a worker's memory for writing a shard; its tokens are in memory behind a URL alone."""
    tokens = source.token_bytes if remote else 0.0
    return (COPIES * source.document_bytes + tokens) / source.shards
