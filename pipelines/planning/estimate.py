"""What a run takes: time, memory, disk, bytes through Beam. Arithmetic alone.

Rates are those of one process that is never idle; each constant says where it was measured.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.dedup.exact import ROWS_PER_TASK
from pipelines.dedup.minhash import NUM_BANDS
from pipelines.map.builder import MAX_HELD_BYTES, MAX_RECORDS, MAX_TOKENS
from pipelines.merge.union import TOKEN_BYTES_AT_ONCE
from pipelines.planning.sizes import (
    BAND_ROW_BYTES,
    Cut,
    Extent,
    SourceSize,
    cut_sources,
    with_groups,
)
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

FETCHED_BYTES_A_SECOND = 100e6
"""Bytes that one worker fetches from an object storage."""

WAIT_SECONDS: Mapping[str, float] = {
    "map": 0.66, "group": 0.09, "dedup": 0.006, "slots": 0.006, "ranges": 0.06, "merge": 0.03
}  # fmt: skip
"""How long a worker waits for an object storage in each phase: for a segment that is mapped or
becomes part of a group, for a slice that later phases read. A request is answered after 0.03 s, and
after the map 16 are under way at a time. Requests were counted in November 2026 on an S3 server: 22
a segment of the map, 46 one of a group; 3 a slice of dedup and slots, 33 of ranges, 16 of merge."""

TEXT_ROW_MEMORY, BAND_ROW_MEMORY, SLOT_ROW_MEMORY = 60, 70, 340
"""Bytes that a task takes for a text, a row of a band, a row of slots: ranges of 2 million rows."""

IDLE_BYTES = 180e6
"""Memory of a worker that has done nothing yet, with Beam and Arrow loaded."""

RECORD_BYTES, SEGMENT_RECORD_BYTES = 3_000, 1_800
"""Memory in the driver for a split, and for a segment with its sums."""

PLANNED_BYTES = 950
"""Memory for a segment of the plan, which every worker reads: its JSON (224) and the objects."""

TASK_BYTES: Mapping[str, int] = {
    "map": 320, "group": 2_600, "dedup": 107, "slots": 177, "ranges": 630, "merge": 151
}  # fmt: skip
"""Pickled tasks, as they pass through Beam: a group of 80 segments, a range of 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The tasks of one kind; all are done before the next kind begins."""

    tasks: int
    slices: int
    """Parts of segments that they read; of map and group whole segments."""
    seconds: float
    """Until all are done, if workers wait for each other only at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run takes."""

    extent: Extent
    grouped: Extent
    """The run as dedup finds it: the same, or one whose segments are groups."""
    cuts: Mapping[str, Cut]
    """How sources are cut into ranges before merge."""
    phases: Mapping[str, Phase]
    """In the order of the run."""
    workers: int
    seconds: float
    """Of the whole run."""
    disk_bytes: float
    """All files that exist at once before the end; groups and ranges repeat the segments."""
    worker_bytes: float
    """Peak memory of a worker."""
    driver_bytes: float
    """Peak memory of the process that hands out tasks."""
    beam_bytes: float
    """Pickled tasks: all that passes through Beam."""


def estimate(extent: Extent, *, workers: int, model_bytes: float) -> Estimate:
    """Return what a run takes.

    Args:
        extent: How large it is.
        workers: Processes, at least 1.
        model_bytes: Memory of tokenizer, language model and the like in each worker.
    """
    grouped = with_groups(extent)
    cuts = cut_sources(grouped)
    phases = estimate_phases(extent, grouped, cuts, workers=workers)
    memory = task_memory(extent, grouped, cuts)
    largest_task = max(memory[name] for name, phase in phases.items() if phase.tasks)
    copies = extent.total("segment_bytes") * (1 + ("group" in phases))
    copies += sum(extent.sources[name].segment_bytes for name in cuts)
    segments, groups = extent.count("segments"), grouped.count("segments")
    planned = segments + groups + sum(cut.tasks for cut in cuts.values())
    records = extent.count("splits") * RECORD_BYTES + segments * SEGMENT_RECORD_BYTES
    idle = IDLE_BYTES + model_bytes
    return Estimate(
        extent=extent,
        grouped=grouped,
        cuts=cuts,
        phases=phases,
        workers=workers,
        seconds=START_SECONDS + sum(phase.seconds for phase in phases.values()),
        disk_bytes=copies + extent.total("shard_bytes") + extent.other_bytes,
        worker_bytes=idle + groups * PLANNED_BYTES + largest_task,
        driver_bytes=idle + records + planned * PLANNED_BYTES,
        beam_bytes=float(sum(phase.tasks * TASK_BYTES[name] for name, phase in phases.items())),
    )


def estimate_phases(
    extent: Extent, grouped: Extent, cuts: Mapping[str, Cut], *, workers: int
) -> dict[str, Phase]:
    """Return the phases of a run in their order; those without tasks are left out, except dedup."""
    segments, signed = extent.count("segments"), extent.total("signed")
    tasks = {
        "map": extent.count("splits"),
        "group": 0 if grouped is extent else grouped.count("segments"),
        "dedup": extent.dedup_tasks + min(extent.text_ranges, 1),  # one more writes all drops
        "slots": extent.slot_ranges,
        "ranges": sum(cut.tasks for cut in cuts.values()),
        "merge": extent.count("merge_tasks"),
    }
    slices = {
        "map": segments,
        "group": segments,
        "dedup": grouped.dedup_slices,
        "slots": grouped.slot_slices,
        "ranges": sum(cut.slices for cut in cuts.values()),
        "merge": sum(
            (cuts[name].range if name in cuts else source).merge_slices
            for name, source in grouped.sources.items()
        ),
    }
    read_bytes = {
        "group": extent.total("segment_bytes"),
        "ranges": sum(grouped.sources[name].segment_bytes for name in cuts),
        "merge": extent.total("segment_bytes"),
    }
    seconds = {
        "map": extent.total("map_seconds"),
        "group": 2 * read_bytes["group"] / MERGED_BYTES_A_SECOND,
        "dedup": extent.total("texts") / TEXT_ROWS_A_SECOND
        + NUM_BANDS * signed / BAND_ROWS_A_SECOND,
        "slots": signed / SLOT_ROWS_A_SECOND,
        "ranges": 2 * read_bytes["ranges"] / MERGED_BYTES_A_SECOND,
        "merge": read_bytes["merge"] / MERGED_BYTES_A_SECOND,
    }
    phases: dict[str, Phase] = {}
    for name, number in tasks.items():
        if extent.remote:
            seconds[name] += slices[name] * WAIT_SECONDS[name]
            seconds[name] += read_bytes.get(name, 0.0) / FETCHED_BYTES_A_SECOND
        if number or name == "dedup":
            rounds = math.ceil(number / workers)
            taken = rounds * (seconds[name] / max(number, 1) + TASK_SECONDS)
            phases[name] = Phase(tasks=number, slices=slices[name], seconds=taken)
    return phases


def task_memory(extent: Extent, grouped: Extent, cuts: Mapping[str, Cut]) -> dict[str, float]:
    """Return the bytes that the largest task of each phase takes, an idle worker aside."""
    remote, signed = extent.remote, extent.total("signed")
    texts = extent.total("texts") / max(extent.text_ranges, 1)
    return {
        "map": max(map(_segment_memory, extent.sources.values())),
        "group": max(_union_memory(source, remote) for source in grouped.sources.values()),
        "dedup": max(
            TEXT_ROW_MEMORY * min(texts, ROWS_PER_TASK),
            BAND_ROW_MEMORY * signed / max(extent.band_ranges, 1),
        ),
        "slots": SLOT_ROW_MEMORY * signed / max(extent.slot_ranges, 1),
        "ranges": max((_union_memory(cut.range, remote) for cut in cuts.values()), default=0.0),
        "merge": max(_shard_memory(source, remote) for source in extent.sources.values()),
    }


def _segment_memory(source: SourceSize) -> float:
    """Return a worker's memory for writing a full segment: tokens twice, rows three times."""
    tokens = min(MAX_TOKENS, source.tokens / source.segments)
    rows = min(MAX_RECORDS, source.records / source.segments)
    width = source.row_bytes["documents"] + source.row_bytes["audit"]
    kept = min(source.kept_bytes / source.segments, MAX_HELD_BYTES)
    return 2 * tokens * source.token_bytes + 3 * rows * width + kept


def _union_memory(source: SourceSize, remote: bool) -> float:
    """Return a worker's memory for a group or range: its longest table, or the signatures.

    Behind a URL what is fetched and what is uploaded come on top: 4.7 times a table of 4 million
    rows was measured.
    """
    table = source.records / source.segments * source.widest_row * (5 if remote else 2)
    held = BAND_ROW_BYTES - 8  # the orders of a band are written from those of the signers
    bands = source.signed / source.segments * NUM_BANDS * held * (3 if remote else 2)
    return max(table, bands, 2.0 * TOKEN_BYTES_AT_ONCE if remote else 0.0)


def _shard_memory(source: SourceSize, remote: bool) -> float:
    """Return a worker's memory for writing a shard: rows three times, behind a URL also tokens."""
    rows = source.documents / source.shards * source.row_bytes["documents"]
    audit = min(source.records / source.shards, ROWS_AT_ONCE) * 3 * source.row_bytes["audit"]
    tokens = source.tokens / source.shards * source.token_bytes if remote else 0.0
    return max(3 * rows + tokens, audit + min(source.kept_bytes / source.shards, BYTES_AT_ONCE))
