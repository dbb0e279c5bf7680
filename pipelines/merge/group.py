"""Groups: where a run has very many segments, runs of them are merged before dedup.

Every task of dedup opens a file of every segment, and every shard some of each of its source. Where
that would be too often, neighbours of one source become one segment of the same format (union.py),
and the plan names it in their place. No byte of the dataset depends on it.

A group is about thirty full segments. The files of its members stay, since a run that is resumed
looks for them: until the run has ended, what the map wrote takes its room twice.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from pipelines.corpus.options import Options
from pipelines.dedup.phases import num_tasks
from pipelines.engine.phases import Phases
from pipelines.merge.union import write_union
from pipelines.segments.plan import Plan, PlannedSegment, task_name
from pipelines.segments.segment import Sieved, with_suffix
from shards.records import sealed
from shards.storage.files import FileEntry, intact, write_json
from shards.storage.remote import AnyPath

FOLDER = "group"

MOST_SLICES = 10_000_000
"""Segments x tasks that read each of them: above this, segments are merged into groups."""

ROWS_PER_GROUP = 4_000_000
"""Rows of the audit that a group has at most."""

BYTES_PER_GROUP = 1 << 30
"""Of the documents' table or the audit, whichever is larger in each member."""

MOST_MEMBERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTask:
    """Segments of one source that become one."""

    name: str
    members: tuple[str, ...]
    """Stems of their files in the map's folder, in the order of identities."""
    dtype: str
    """Type of a token."""

    def __str__(self) -> str:
        return f"group of {len(self.members)} segments from {self.members[0]} on"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """A group that was written; without files its members stay as they are (union.py)."""

    stem: str
    files: Mapping[str, FileEntry]
    """By suffix."""


def grouped(plan: Plan, phases: Phases, options: Options, *, work: AnyPath) -> Plan:
    """Return the plan for dedup and merge, saved: the one given, or one with groups.

    Args:
        plan: The segments that the map left.
        phases: Where the groups are made.
        options: Of the run.
        work: The folder of intermediate files.
    """
    if num_slices(plan, options) <= MOST_SLICES:
        return plan
    runs = list(neighbours(plan.segments))
    tasks = {at: _task(run, plan) for at, run in enumerate(runs) if len(run) > 1}
    records = phases.finish(
        FOLDER,
        list(tasks.values()),
        prepare_group,
        work,
        record_type=GroupRecord,
        complete=partial(_complete, work),
    )
    written = {
        at: union_of(runs[at], name=task.name)
        for at, task in tasks.items()
        if records[task.name].files
    }
    segments = [[written[at]] if at in written else run for at, run in enumerate(runs)]
    made = replace(plan, segments=tuple(each for run in segments for each in run))
    made.save(work)
    return made


def num_slices(plan: Plan, options: Options) -> int:
    """Return how many parts of segments dedup and merge would read, about."""
    slices = len(plan.segments) * num_tasks(plan, options)
    for source in plan.sources:
        numbers = plan.numbers(source)
        tokens = sum(plan.segments[at].tokens for at in numbers)
        slices += len(numbers) * (options.shards or 1 + tokens // options.shard_tokens)
    return slices


def neighbours(segments: Iterable[PlannedSegment]) -> Iterator[list[PlannedSegment]]:
    """Yield the segments in runs of one source, each as long as a group may be."""
    run: list[PlannedSegment] = []
    rows = size = 0
    for each in segments:
        rows, size = rows + each.rows, size + each.table_bytes
        full = rows > ROWS_PER_GROUP or size > BYTES_PER_GROUP or len(run) == MOST_MEMBERS
        if run and (full or each.source != run[0].source):
            yield run
            run, rows, size = [], each.rows, each.table_bytes
        run.append(each)
    if run:
        yield run


def _task(run: Sequence[PlannedSegment], plan: Plan) -> GroupTask:
    members = tuple(each.stem for each in run)
    # A file that changed and kept its size has the same stems; the plan's fingerprint knows it.
    name = task_name(FOLDER, plan.fingerprint, members, plan.dtype)
    return GroupTask(name=name, members=members, dtype=plan.dtype)


def union_of(run: Sequence[PlannedSegment], *, name: str) -> PlannedSegment:
    """Return segments as the one that their union is, its files named `name`."""
    sums = ("rows", "documents", "tokens", "rejects", "held_bytes", "table_bytes")
    sieved = {
        each.name: sum(getattr(segment.sieved, each.name) for segment in run)
        for each in fields(Sieved)
    }
    return PlannedSegment(
        stem=name,
        source=run[0].source,
        longest=max(each.longest for each in run),
        sieved=Sieved(**sieved),
        folder=FOLDER,
        **{each: sum(getattr(segment, each) for segment in run) for each in sums},
    )


def prepare_group(work: AnyPath) -> Callable[[GroupTask], None]:
    """Return the function that makes groups in a folder of intermediate files."""
    return partial(run_group, work)


def run_group(work: AnyPath, task: GroupTask) -> None:
    """Write the union of segments, then the record."""
    members = [work / "map" / stem for stem in task.members]
    dtype = np.dtype(task.dtype).newbyteorder("<")
    files = write_union(work / FOLDER / task.name, members, dtype=dtype)
    record = GroupRecord(stem=task.name, files=files)
    write_json(work / FOLDER / f"{task.name}.json", sealed(record))


def _complete(work: AnyPath, record: GroupRecord) -> bool:
    """Return whether the files of a group are there as they were written."""
    stem = work / FOLDER / record.stem
    return all(intact(with_suffix(stem, suffix), entry) for suffix, entry in record.files.items())
