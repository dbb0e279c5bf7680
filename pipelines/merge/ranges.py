"""Ranges: if a source has very many shards, its groups are cut by ranges of the order before merge.

Every shard reads a slice of each segment of its source, so the slices are as many as segments times
shards, and the more there are, the shorter they are: of sixty documents at 100 TB, where a file
behind a URL is fetched in blocks of thousands. Instead a task reads one of R ranges of the order
from neighbouring segments, about R of them, and writes it as one segment, which holds as many rows
as each of them did. A shard then reads only the segments of its own range. Where shards are very
many, the new segments are cut once more.

Dedup has decided before: the new segments lack the documents that it drops, and their audit has the
final verdicts. They have no hashes and no signatures. No byte of the dataset depends on it.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.dedup.drops import Drops, drop_path
from pipelines.dedup.phases import Deduplicated
from pipelines.engine.phases import Phases
from pipelines.merge.group import plan_union, slices_are_short, split_into_groups
from pipelines.merge.merge import find_documents, judged_rows, merged_rows
from pipelines.merge.union import (
    MergedOrder,
    TokenRuns,
    copy_tokens,
    write_holdout,
    write_sorted,
)
from pipelines.segments.bins import bins_table
from pipelines.segments.plan import Plan, PlannedSegment, load_plan, task_name
from pipelines.segments.segment import with_suffix
from shards.manifest import WORK
from shards.paths import check_stem
from shards.range import Range, split_range
from shards.records import sealed
from shards.storage.files import FileEntry, atomic_write, intact, write_json
from shards.storage.remote import AnyPath, RemotePath
from shards.storage.sparse import BLOCK_ROWS, side_by_side
from shards.tables import (
    between,
    column,
    open_rows,
    rows_between,
    spread_over,
    write_table,
)

FOLDER = "ranges"

MOST_SHARD_SLICES = 10_000_000
"""Segments x shards of a source; beyond this number the segments are cut."""

MOST_CUT_SLICES = 35_000_000
"""Slices that all passes and the shards of a source may read together, at a dozen requests each;
a pass more makes fewer."""

MOST_PASSES = 4

PASS_WEIGHT = 2
"""What a slice of a pass counts: tokens are read in pieces, twice the requests of a shard's."""


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


def choose_cuts(segments: int, shards: int, *, rows: float, remote: bool) -> tuple[int, ...]:
    """Return into how many ranges each pass cuts the segments of a source; () for no pass.

    Args:
        segments: How many there are.
        shards: How many read each of them.
        rows: Rows of .audit of all segments.
        remote: They are behind a URL.
    """
    slices = segments * shards
    if slices <= MOST_SHARD_SLICES and not (remote and slices_are_short(slices, rows)):
        return ()
    best: tuple[int, ...] = ()
    least = slices
    for passes in range(1, MOST_PASSES + 1):
        for bits in range(1, (shards - 1).bit_length() // passes + 1):
            cuts = (1 << bits,) * passes
            if (needed := _num_slices(segments, shards, cuts)) < least:
                best, least = cuts, needed
        if best and least <= MOST_CUT_SLICES:
            break
    return best


def _num_slices(segments: int, shards: int, cuts: Sequence[int]) -> int:
    """Return the slices that the passes, by weight, and the shards read.

    Args:
        segments: How many there are; a pass makes one of as many as it cuts ranges.
        shards: How many shards.
        cuts: Into how many ranges each pass cuts.
    """
    left, ranges, slices = segments, 1, 0
    for cut in cuts:
        slices += PASS_WEIGHT * left * ranges * cut
        left, ranges = -(-left // cut), ranges * cut
    return slices + left * shards


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
    cuts: dict[str, tuple[int, ...]] = {}
    for source in plan.sources:
        numbers = plan.numbers(source)
        cuts[source] = choose_cuts(
            len(numbers),
            shards[source],
            rows=sum(plan.segments[number].rows for number in numbers),
            remote=isinstance(work, RemotePath),
        )
    plans = dict.fromkeys(plan.sources, plan)
    for step in range(max(map(len, cuts.values()), default=0)):
        runs = {
            source: list(_runs(plans[source], source, cut[step]))
            for source, cut in cuts.items()
            if step < len(cut)
        }
        tasks = {
            source: [_task(plans[source], run, dedup, first=not step) for run in source_runs]
            for source, source_runs in runs.items()
        }
        records = phases.finish(
            FOLDER,
            list(itertools.chain(*tasks.values())),
            prepare_range,
            output,
            record_type=RangeRecord,
            complete=partial(_complete, work),
        )
        for source, source_tasks in tasks.items():
            segments = (
                replace(run.planned, stem=task.name, rejects=records[task.name].rejects)
                for run, task in zip(runs[source], source_tasks, strict=True)
            )
            plans[source] = replace(plan, segments=tuple(segments))
            plans[source].save(work)
    return plans


@dataclass(frozen=True, slots=True)
class _Run:
    """A range of neighbouring segments: their numbers, and what a plan lists in their place."""

    numbers: tuple[int, ...]
    planned: PlannedSegment


def _runs(plan: Plan, source: str, cut: int) -> Iterator[_Run]:
    """Yield the ranges of a source's segments, so cut; those of one range by identity."""
    numbers = sorted(plan.numbers(source), key=lambda number: plan.segments[number].index)
    for index, same in itertools.groupby(numbers, key=lambda number: plan.segments[number].index):
        left = list(same)
        segments = [plan.segments[number] for number in left]
        for run in split_into_groups(segments, ranges=cut):
            members, left = tuple(left[: len(run)]), left[len(run) :]
            whole = plan_union(run, name="")
            for part in range(cut):
                yield _Run(
                    members,
                    replace(
                        _share(whole, part, cut),
                        folder=FOLDER,
                        index=index * cut + part,
                        total=run[0].total * cut,
                    ),
                )


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


def _task(plan: Plan, run: _Run, dedup: Deduplicated, *, first: bool) -> RangeTask:
    index, total = run.planned.index, run.planned.total
    drops = dedup.drops_within(Range.of(index, total)) if first else ()
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
    cut = Cut(
        {number: plan.segments[number] for number in task.numbers},
        work=work,
        within=within,
        drops=Drops.load(paths, within, segments=task.numbers),
    )
    stem = work / FOLDER / task.name
    files = cut.write_documents(stem, dtype=np.dtype(plan.dtype).newbyteorder("<"))
    pa.default_memory_pool().release_unused()
    files |= cut.write_audit(stem, texts=plan.texts)
    pa.default_memory_pool().release_unused()
    rejects = cut.write_rejects(stem)
    record = RangeRecord(stem=task.name, rejects=rejects.rows, files={**files, **rejects.files})
    write_json(work / FOLDER / f"{task.name}.json", sealed(record))


@dataclass(frozen=True, slots=True)
class _Rejects:
    """What was written of them: how many, and the file, if there are any."""

    rows: int
    files: Mapping[str, FileEntry]


class Cut:
    """A range of the order of some segments.

    Memory is the tables .documents and .audit of the range, one after the other, twice; texts and
    rejects are copied in parts, tokens in pieces.
    """

    def __init__(
        self,
        segments: Mapping[int, PlannedSegment],
        *,
        work: AnyPath,
        within: Range,
        drops: Drops,
    ) -> None:
        """Take segments.

        Args:
            segments: By number, in the order of identities.
            work: The folder of intermediate files.
            within: The range.
            drops: What dedup dropped of them in the range.
        """
        self._segments = segments
        self._stems = {number: segment.path(work) for number, segment in segments.items()}
        self._work = work
        self._within = within
        self._drops = drops

    def write_documents(self, stem: AnyPath, *, dtype: np.dtype[Any]) -> dict[str, FileEntry]:
        """Write the documents that are not dropped and what belongs to them, and return the files.

        Args:
            stem: The stem of the new segment.
            dtype: Type of a token.
        """
        parts = side_by_side(
            lambda item: find_documents(
                item[1], self._within, dropped=self._drops.rows(item[0]), holdout=0
            ),
            self._stems.items(),
            where=self._work,
        )
        runs = [
            TokenRuns(
                with_suffix(path, "tokens"),
                part.starts,
                column(part.documents, "tokens").astype(np.int64),
                part.size,
            )
            for path, part in zip(self._stems.values(), parts, strict=True)
        ]
        tables = [part.documents for part in parts]
        del parts
        # Otherwise the allocator keeps what reading took while the new table needs as much.
        pa.default_memory_pool().release_unused()
        columns = {name: [column(table, name) for table in tables] for name in ("order", "holdout")}
        merged = MergedOrder.of(columns["order"])
        order, holdout = (np.concatenate(values)[merged.rows] for values in columns.values())
        files = {"documents": write_sorted(stem, "documents", tables, merged, within=self._within)}
        del tables, columns
        pa.default_memory_pool().release_unused()
        lengths = np.concatenate([run.lengths for run in runs])[merged.rows]
        files["bins"] = write_table(
            with_suffix(stem, "bins"), bins_table(order, lengths, within=self._within)
        )
        rows = np.arange(len(order), dtype=np.uint32)
        files["holdout"] = write_holdout(stem, holdout, rows, order)
        del order, holdout, lengths
        files["tokens"] = copy_tokens(with_suffix(stem, "tokens"), runs, merged, dtype=dtype)
        return files

    def write_audit(self, stem: AnyPath, *, texts: bool) -> dict[str, FileEntry]:
        """Write the audit rows with their last verdicts, maybe their texts, and return the files.

        Args:
            stem: The stem of the new segment.
            texts: Whether the segments hold texts.
        """
        parts = side_by_side(
            lambda item: judged_rows(item[1], self._within, dropped=self._drops.orders(item[0])),
            self._stems.items(),
            where=self._work,
        )
        pa.default_memory_pool().release_unused()
        orders = [column(part, "order") for part in parts]
        merged = MergedOrder.of(orders)
        files = {"audit": write_sorted(stem, "audit", parts, merged, within=self._within)}
        if texts:
            files["texts"] = _write_blocks(with_suffix(stem, "texts"), self._texts(orders))
        return files

    def _texts(self, orders: Sequence[np.ndarray]) -> Iterator[pa.Table]:
        """Yield the texts in the order of the audit rows, a part of the range at a time.

        Args:
            orders: Those of the audit rows of each segment in the range.
        """
        low, high = self._within.low, self._within.high
        before = [
            rows_between(with_suffix(path, "audit"), "order", low=low, high=high).start
            for path in self._stems.values()
        ]
        for part in self._parts():
            slices = [between(order, part.low, part.high) for order in orders]
            tables = [
                open_rows(with_suffix(path, "texts"), slice(first + rows.start, first + rows.stop))
                for path, first, rows in zip(self._stems.values(), before, slices, strict=True)
            ]
            keys = [order[rows] for order, rows in zip(orders, slices, strict=True)]
            yield pa.concat_tables(tables).take(MergedOrder.of(keys).rows)

    def write_rejects(self, stem: AnyPath) -> _Rejects:
        """Write the rejects, if there are any."""
        stems = {
            number: path for number, path in self._stems.items() if self._segments[number].rejects
        }
        counts: list[int] = []

        def found() -> Iterator[pa.Table]:
            for part in self._parts() if stems else ():
                rows = merged_rows(stems, "rejects", part)
                if rows.num_rows:
                    counts.append(rows.num_rows)
                    yield spread_over(rows, self._within)

        tables = found()
        first = next(tables, None)
        if first is None:
            return _Rejects(0, {})
        path = with_suffix(stem, "rejects")
        file = _write_blocks(path, itertools.chain([first], tables))
        return _Rejects(sum(counts), {"rejects": file})

    def _parts(self) -> list[Range]:
        """Return the range in parts of bounded size."""
        segments = self._segments.values()
        return split_range(
            self._within,
            rows=sum(segment.rows * segment.total for segment in segments),
            held_bytes=sum(segment.held_bytes * segment.total for segment in segments),
        )


def _write_blocks(path: AnyPath, tables: Iterator[pa.Table]) -> FileEntry:
    """Write tables without dictionaries as one, in blocks as write_table does."""
    rest = next(tables)
    with atomic_write(path) as handle, pa.ipc.new_file(handle, rest.schema) as writer:
        for table in tables:
            full = len(rest) // BLOCK_ROWS * BLOCK_ROWS
            writer.write_table(rest[:full].combine_chunks(), max_chunksize=BLOCK_ROWS)
            rest = pa.concat_tables([rest[full:], table])
        writer.write_table(rest.combine_chunks(), max_chunksize=BLOCK_ROWS)
    return handle.entry


def _complete(work: AnyPath, record: RangeRecord) -> bool:
    """Return whether the files of a range are intact."""
    stem = work / FOLDER / record.stem
    return all(intact(with_suffix(stem, suffix), entry) for suffix, entry in record.files.items())
