"""Ranges: if a source has very many shards, its groups are cut by ranges of the order before merge.

Every shard reads a slice of each segment of its source, so the slices are as many as segments times
shards, and the more there are, the shorter they are: of sixty documents at 100 TB, where a file
behind a URL is fetched in blocks of thousands. Instead a task reads one of R ranges of the order
from neighbouring segments, about R of them, and writes it as one segment, which holds as many rows
as each of them did. A shard then reads only the segments of its own range.

Dedup has decided before: the new segments lack the documents that it drops, and their audit has the
final verdicts. They have no hashes and no signatures. No byte of the dataset depends on it.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from pipelines.dedup.drops import Drops, drop_path
from pipelines.dedup.phases import Deduplicated
from pipelines.engine.phases import Phases
from pipelines.merge.group import plan_union, slices_are_short, split_into_groups
from pipelines.merge.union import Cut, intact_stem
from pipelines.segments.plan import Plan, PlannedSegment, load_plan, task_name
from shards.manifest import WORK
from shards.paths import check_stem
from shards.range import Range
from shards.records import sealed
from shards.storage.files import FileEntry, write_json
from shards.storage.remote import AnyPath, RemotePath

FOLDER = "ranges"

MOST_SHARD_SLICES = 10_000_000
"""Segments x shards of a source; beyond this number the segments are cut."""

PASS_WEIGHT = 2
"""What a slice that is cut counts: tokens are read in pieces, twice the requests of a shard's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeTask:
    """A range of the order of neighbouring segments of one source, which becomes one segment."""

    name: str
    plan: str
    numbers: tuple[int, ...]
    """The segments, in the order of identities."""
    index: int
    total: int
    """Which of how many ranges."""
    drops: tuple[str, ...]
    """References of the drop files that may name documents of the range."""

    def __str__(self) -> str:
        return (
            f"range {self.index} of {self.total} of {len(self.numbers)} segments "
            f"from number {self.numbers[0]} on"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRecord:
    """A segment that was written."""

    stem: str
    rejects: int
    """Rows of .rejects, which is only there if there are any."""
    files: Mapping[str, FileEntry]
    """By suffix."""

    def __post_init__(self) -> None:
        check_stem(self.stem, self.files)


def choose_cut(segments: int, shards: int, *, rows: float, remote: bool) -> int:
    """Return into how many ranges the segments of a source are cut; 1 for not at all.

    Args:
        segments: How many there are.
        shards: How many read each of them.
        rows: Rows of .audit of all segments.
        remote: They are behind a URL.
    """
    slices = segments * shards
    if slices <= MOST_SHARD_SLICES and not (remote and slices_are_short(slices, rows)):
        return 1

    def slices_of(cut: int) -> int:
        # Of as many segments as there are ranges one is made in each range.
        read = PASS_WEIGHT * segments * cut if cut > 1 else 0
        return read + -(-segments // cut) * shards

    return min((1 << bits for bits in range((shards - 1).bit_length() + 1)), key=slices_of)


def cut_into_ranges(
    plan: Plan, phases: Phases, output: AnyPath, *, shards: Mapping[str, int], dedup: Deduplicated
) -> dict[str, Plan]:
    """Return, by source, the saved plan from which its shards are merged.

    It is the plan itself, or a plan of the source's ranges, from which nothing is dropped any more.

    Args:
        plan: The segments that dedup read.
        phases: Runs the tasks.
        output: The folder of the dataset.
        shards: How many shards each source gets.
        dedup: The results of dedup.
    """
    work = output / WORK
    plans = dict.fromkeys(plan.sources, plan)
    runs: dict[str, list[_Run]] = {}
    for source in plan.sources:
        segments = [plan.segments[number] for number in plan.numbers(source)]
        rows = sum(segment.rows for segment in segments)
        remote = isinstance(work, RemotePath)
        cut = choose_cut(len(segments), shards[source], rows=rows, remote=remote)
        if cut > 1:
            runs[source] = list(_runs(plan, source, cut))
    if not runs:
        return plans
    tasks = {source: [_task(plan, run, dedup) for run in runs[source]] for source in runs}
    records = phases.finish(
        FOLDER,
        list(itertools.chain(*tasks.values())),
        prepare_range,
        output,
        record_type=RangeRecord,
        complete=lambda record: intact_stem(work / FOLDER / record.stem, record.files),
    )
    for source, source_tasks in tasks.items():
        planned = (
            replace(run.planned, stem=task.name, rejects=records[task.name].rejects)
            for run, task in zip(runs[source], source_tasks, strict=True)
        )
        plans[source] = replace(plan, segments=tuple(planned))
        plans[source].save(work)
    return plans


@dataclass(frozen=True, slots=True)
class _Run:
    """A range of neighbouring segments: their numbers, and what a plan lists in their place."""

    numbers: tuple[int, ...]
    planned: PlannedSegment


def _runs(plan: Plan, source: str, cut: int) -> Iterator[_Run]:
    """Yield the ranges of a source's segments, so cut; those of one range by identity."""
    numbers = plan.numbers(source)
    left = iter(numbers)
    for group in split_into_groups([plan.segments[number] for number in numbers], ranges=cut):
        members = tuple(itertools.islice(left, len(group)))
        whole = plan_union(group, name="")
        for part in range(cut):
            planned = _share(whole, part, cut)
            yield _Run(members, replace(planned, folder=FOLDER, index=part, total=cut))


def _share(whole: PlannedSegment, part: int, parts: int) -> PlannedSegment:
    """Return an even share of a segment's sums; all shares add up to them.

    What merge asks for is the sum over a source, as it was before dedup.
    """
    names = ("rows", "documents", "tokens", "held_bytes", "table_bytes")
    return replace(
        whole,
        **{
            name: getattr(whole, name) * (part + 1) // parts - getattr(whole, name) * part // parts
            for name in names
        },
    )


def _task(plan: Plan, run: _Run, dedup: Deduplicated) -> RangeTask:
    index, total = run.planned.index, run.planned.total
    drops = dedup.drops_within(Range.of(index, total))
    return RangeTask(
        name=task_name(FOLDER, plan.name, run.numbers, index, total, drops),
        plan=plan.name,
        numbers=run.numbers,
        index=index,
        total=total,
        drops=drops,
    )


def prepare_range(output: AnyPath) -> Callable[[RangeTask], None]:
    """Return the function that runs range tasks of the run in `output`."""
    return partial(run_range, output)


def run_range(output: AnyPath, task: RangeTask) -> None:
    """Write a range of segments as one segment, then the record."""
    work = output / WORK
    plan = load_plan(work, task.plan)
    within = Range.of(task.index, task.total)
    paths = [drop_path(work, name) for name in task.drops]
    segments = {number: plan.segments[number] for number in task.numbers}
    cut = Cut(
        {number: segment.path(work) for number, segment in segments.items()},
        rows=sum(segment.rows * segment.total for segment in segments.values()),
        held_bytes=sum(segment.held_bytes * segment.total for segment in segments.values()),
        within=within,
        drops=Drops.load(paths, within, segments=task.numbers),
    )
    stem = work / FOLDER / task.name
    files = cut.write_documents(stem, dtype=np.dtype(plan.dtype).newbyteorder("<"))
    pa.default_memory_pool().release_unused()
    files |= cut.write_audit(stem, texts=plan.texts)
    pa.default_memory_pool().release_unused()
    rejects = cut.write_rejects(stem, [n for n, segment in segments.items() if segment.rejects])
    record = RangeRecord(stem=task.name, rejects=rejects.rows, files={**files, **rejects.files})
    write_json(work / FOLDER / f"{task.name}.json", sealed(record))
