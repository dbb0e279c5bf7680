"""Groups: if a run has very many segments, neighbouring ones are merged before dedup.

Every task of dedup opens a file of every segment, and every shard opens some files of each segment
of its source. If that is too many, neighbours of one source become one segment of the same format
(union.py), and the plan names it in their place. No byte of the dataset depends on it.

A group is about thirty full segments. The files of its members stay, because a resumed run looks
for them: until the run ends, what the map wrote takes twice its space.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from pipelines.dedup.phases import num_tasks
from pipelines.engine.phases import Phases
from pipelines.merge.union import intact_stem, write_union
from pipelines.segments.plan import Plan, PlannedSegment, task_name
from pipelines.segments.segment import SieveCounts
from shards.paths import check_stem
from shards.records import sealed
from shards.storage.files import FileEntry, write_json
from shards.storage.remote import AnyPath, RemotePath

FOLDER = "group"

MOST_SLICES = 10_000_000
"""Segments x tasks that read each of them; beyond this number segments are merged into groups."""

FEW_SLICES, LEAST_ROWS = 100_000, 1024
"""Behind a URL, where a slice takes whole blocks of a table, segments are also merged if shards
read more slices than the first, which have fewer rows than the second on average."""

ROWS_PER_GROUP = 4_000_000
"""Rows of .audit that a group has at most."""

BYTES_PER_GROUP = 1 << 30
"""Bytes of .documents or .audit, whichever is larger in each member, that a group has at most."""

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
    """A group that was written; without files its members stay separate (see write_union)."""

    stem: str
    files: Mapping[str, FileEntry]
    """By suffix."""

    def __post_init__(self) -> None:
        check_stem(self.stem, self.files)


def group_segments(
    plan: Plan, phases: Phases, *, work: AnyPath, dedup: str, shards: int, shard_tokens: int
) -> Plan:
    """Return the saved plan for dedup and merge: the same plan, or one with groups.

    Args:
        plan: The segments that the map wrote.
        phases: Runs the tasks that make the groups.
        work: The folder of intermediate files.
        dedup: none, exact or minhash, as --dedup says.
        shards: Shards per source; 0: as many as `shard_tokens` asks for.
        shard_tokens: Most tokens of a shard.
    """
    slices = len(plan.segments) * num_tasks(plan, dedup)
    shard_slices = num_shard_slices(plan, shards=shards, shard_tokens=shard_tokens)
    rows = sum(segment.rows for segment in plan.segments)
    short = isinstance(work, RemotePath) and slices_are_short(shard_slices, rows)
    if slices + shard_slices <= MOST_SLICES and not short:
        return plan
    runs = list(split_into_groups(plan.segments))
    tasks = {number: _task(run, plan) for number, run in enumerate(runs) if len(run) > 1}
    records = phases.finish(
        FOLDER,
        list(tasks.values()),
        prepare_group,
        work,
        record_type=GroupRecord,
        complete=lambda record: intact_stem(work / FOLDER / record.stem, record.files),
    )
    segments: list[PlannedSegment] = []
    for number, run in enumerate(runs):
        if number in tasks and records[tasks[number].name].files:
            segments.append(plan_union(run, name=tasks[number].name))
        else:
            segments += run
    with_groups = replace(plan, segments=tuple(segments))
    with_groups.save(work)
    return with_groups


def slices_are_short(slices: int, rows: float) -> bool:
    """Return whether slices of a storage's files would fetch far more than they read.

    Args:
        slices: Segments x shards.
        rows: Rows of .audit of all segments.
    """
    return slices > FEW_SLICES and rows < LEAST_ROWS * slices


def num_shard_slices(plan: Plan, *, shards: int, shard_tokens: int) -> int:
    """Return about how many parts of segments merge would read."""
    slices = 0
    for source in plan.sources:
        numbers = plan.numbers(source)
        tokens = sum(plan.segments[number].tokens for number in numbers)
        slices += len(numbers) * (shards or 1 + tokens // shard_tokens)
    return slices


def split_into_groups(
    segments: Iterable[PlannedSegment], *, ranges: int = 1
) -> Iterator[list[PlannedSegment]]:
    """Yield the segments in runs of one source, each as long as a group may be.

    Args:
        segments: The segments.
        ranges: A group is to be one of so many ranges of its members.
    """
    run: list[PlannedSegment] = []
    rows = size = 0
    for segment in segments:
        rows, size = rows + segment.rows, size + segment.table_bytes
        full = (
            rows > ROWS_PER_GROUP * ranges
            or size > BYTES_PER_GROUP * ranges
            or len(run) == MOST_MEMBERS
        )
        if run and (full or segment.source != run[0].source):
            yield run
            run, rows, size = [], segment.rows, segment.table_bytes
        run.append(segment)
    if run:
        yield run


def _task(run: Sequence[PlannedSegment], plan: Plan) -> GroupTask:
    members = tuple(segment.stem for segment in run)
    # An input that changed but kept its size has the same stems; the plan's fingerprint differs.
    name = task_name(FOLDER, plan.fingerprint, members, plan.dtype)
    return GroupTask(name=name, members=members, dtype=plan.dtype)


def plan_union(run: Sequence[PlannedSegment], *, name: str) -> PlannedSegment:
    """Return the union of segments as a plan lists it, its files named `name`."""
    sums = ("rows", "documents", "tokens", "rejects", "held_bytes", "table_bytes")
    sieved = {
        field.name: sum(getattr(segment.sieved, field.name) for segment in run)
        for field in fields(SieveCounts)
    }
    return PlannedSegment(
        stem=name,
        source=run[0].source,
        longest=max(segment.longest for segment in run),
        sieved=SieveCounts(**sieved),
        folder=FOLDER,
        **{field: sum(getattr(segment, field) for segment in run) for field in sums},
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
