"""How many requests a run makes of the storage behind a URL, and the bytes that they fetch.

They are counted. Of each source a segment of mean size is written into a storage that counts
(storage.py): rows of the sample repeated, with new, even hashes. On it run some of the real tasks
of each phase, spread over all. What they request of a segment is multiplied by the slices of the
run, everything else by its tasks. tests/engines/test_requests.py compares the result with a
server's own count.
"""

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import Signers, write_bands, write_slots
from pipelines.dedup.drops import drop_path
from pipelines.dedup.minhash import NUM_BANDS, NUM_SLOTS
from pipelines.dedup.phases import Deduplicated
from pipelines.dedup.tasks import TEXT, Task, TaskRecord, prepare_task
from pipelines.engine.phases import Phases
from pipelines.engine.progress import PLAIN_SECONDS
from pipelines.engine.runner import Runner
from pipelines.engine.task import RunTask
from pipelines.map.attempts import begin_attempt
from pipelines.merge.group import GroupRecord, GroupTask, prepare_group
from pipelines.merge.holdout import num_shards
from pipelines.merge.merge import find_held_out
from pipelines.merge.ranges import RangeRecord, RangeTask, prepare_range
from pipelines.merge.tasks import MergeRecord, MergeTask, prepare_merge
from pipelines.merge.union import TOKEN_BYTES_AT_ONCE
from pipelines.planning.sizes import TABLE_BYTES, Extent, SourceSize, passes, with_groups
from pipelines.planning.storage import PAGE_KEYS, Call, Requests, counting, upload
from pipelines.segments.bins import bins_table
from pipelines.segments.examples import MOST_KEPT
from pipelines.segments.identity import hash_bound
from pipelines.segments.plan import Plan, PlannedSegment
from pipelines.segments.segment import SieveCounts, with_suffix
from shards.manifest import TRAIN, VALIDATION, WORK
from shards.range import EVERYTHING, Range
from shards.records import sealed
from shards.storage.files import write_json
from shards.storage.lease import RENEWED_AFTER
from shards.storage.remote import RemotePath
from shards.tables import open_rows, open_table, write_table

MOST_TASKS = 8
"""Tasks of a phase and source that run, at most."""

MOST_ROWS = 5_000_000
"""Audit rows of all groups that are written, at most: the largest sources stand for the rest."""

MOST_GROUPED = 3
"""Sources, the largest, of which a group is made: they stand for the rest."""

MOST_TOKEN_BYTES = 1 << 30
"""Largest file of tokens that is written: not every machine can map larger ones."""

MOST_SIGNED = 100_000
"""Rows of each band but the first of a segment that are written, at most: no task reads them."""

RUN = Requests(put=7, get=2, head=9, list=10, delete=2)
"""What a run takes besides its tasks: lock, notes of attempts, the look at the first records,
manifest, report, examples."""

RENEWAL = Requests(put=1, get=1, head=1)
"""The lease is renewed."""


def count_requests(extent: Extent, *, workers: int) -> dict[str, Requests]:
    """Return the requests of each phase of a run whose output is behind a URL.

    `polling_requests` come on top, and so does the comparison of documents that have a band in
    common: no sample shows how many there are.

    Args:
        extent: How large the run is; sources without documents in their sample are left out.
        workers: Processes that do the tasks; each asks for the size of a file once a phase.
    """
    sampled = {
        name: source
        for name, source in extent.sources.items()
        if len(source.tables.get("documents", ()))
    }
    if not sampled:
        return {"the rest": RUN}
    extent = replace(extent, sources=sampled)
    later, more, segments = with_groups(extent), 1.0, 1.0
    with counting() as (output, calls):
        model = _Model(extent, output / "segments", calls=calls, workers=workers)
        phases = {"map": model.map()}
        if later is not extent:
            phases["group"] = model.group(later)
            largest = _largest(later)
            more = later.slices / largest.slices
            segments = later.segments / largest.segments
            model = _Model(largest, output / "groups", calls=calls, workers=workers)
        phases["dedup"] = model.dedup() * more
        if later.slot_ranges:
            phases["slots"] = model.slots(more=segments)
        if not later.cuts:
            phases["merge"] = model.merge() * more
        pages = _files(extent) / PAGE_KEYS
        phases["the rest"] = RUN + Requests(list=pages, delete=pages) + model.examples() * more
    if later.cuts:
        phases |= _merge_of_ranges(later, workers=workers)
    return phases


def _merge_of_ranges(extent: Extent, *, workers: int) -> dict[str, Requests]:
    """Return the requests of ranges and merge.

    One range of a source stands for all: a run of its own, of a fraction of the size.
    """
    total = {"ranges": Requests(), "merge": Requests()}
    names = sorted(extent.cuts, key=lambda name: -extent.sources[name].records)
    counted = 0.0
    for name in names[:MOST_GROUPED]:
        counted += extent.sources[name].records
        for step in passes(extent.sources[name], extent.cuts[name]):
            with counting() as (output, calls):
                one = _one_range(extent, name, step.before, step.times)
                model = _Model(one, output / "segments", calls=calls, workers=workers, listed=True)
                total["ranges"] += model.ranges(step.cut, step.after) * step.times
        ranges = step.times * step.cut
        with counting() as (output, calls):
            one = _one_range(extent, name, step.after, ranges)
            model = _Model(one, output / "segments", calls=calls, workers=workers, listed=True)
            total["merge"] += model.merge() * ranges
    more = sum(extent.sources[name].records for name in names) / counted
    total = {phase: requests * more for phase, requests in total.items()}
    uncut = {name: source for name, source in extent.sources.items() if name not in extent.cuts}
    if uncut:
        rest = replace(extent, sources=uncut)
        largest = _largest(rest)
        with counting() as (output, calls):
            model = _Model(largest, output / "groups", calls=calls, workers=workers)
            total["merge"] += model.merge() * (rest.merge_slices / largest.merge_slices)
    return total


def _one_range(extent: Extent, name: str, source: SourceSize, ranges: int) -> Extent:
    """Return a run of one of the ranges of a source, with its share of the shards."""
    return replace(
        extent,
        sources={name: source},
        shards={name: math.ceil(extent.shards[name] / ranges)},
        validation={name: math.ceil(extent.validation[name] / ranges)},
    )


def polling_requests(extent: Extent, *, seconds: float) -> Requests:
    """Return the requests for progress and lease during the seconds of a run."""
    look = RENEWAL + Requests(list=max(1, _files(extent) / PAGE_KEYS))
    return look * (seconds / min(PLAIN_SECONDS, RENEWED_AFTER))


def _files(extent: Extent) -> int:
    """Return how many files the map leaves, about."""
    return 9 * extent.segments + extent.splits


def _largest(extent: Extent) -> Extent:
    """Return the run with its largest sources alone, whose segments have MOST_ROWS together."""
    rows, chosen = 0.0, dict[str, SourceSize]()
    for name, source in sorted(extent.sources.items(), key=lambda item: -item[1].records):
        rows += source.records / source.segments
        if not chosen or rows <= MOST_ROWS:
            chosen[name] = source
    return replace(extent, sources=chosen)


class _InProcess:
    """Runs tasks one after the other."""

    def run(
        self,
        tasks: Sequence[Any],
        prepare: Callable[[Any], RunTask],
        argument: Any,
        *,
        phase: str,  # noqa: ARG002  for engines to show
    ) -> None:
        work = prepare(argument)
        for task in tasks:
            work(task)


class _Model:
    """A run with one segment a source, that of mean size."""

    def __init__(
        self,
        extent: Extent,
        output: RemotePath,
        *,
        calls: list[Call],
        workers: int,
        listed: bool = False,
    ) -> None:
        """Write the segments.

        Args:
            extent: The run.
            output: Its folder.
            calls: Where the storage counts.
            workers: Processes.
            listed: It stands for several; what the driver lists once for all is left out.
        """
        self._extent = extent
        self._output = output
        self._work = output / WORK
        self._calls = calls
        self._workers = workers
        self._drops: tuple[str, ...] = ()
        self._phases = {"ranges", "merge"} if listed else set[str]()
        sources = {f"s{index}": name for index, name in enumerate(sorted(extent.sources))}
        self._segments = {stem: extent.sources[name].segments for stem, name in sources.items()}
        """By stem, how many segments of the run it stands for."""
        tokens = max(source.tokens / source.segments for source in extent.sources.values())
        thin = max(1.0, tokens * extent.token_bytes / MOST_TOKEN_BYTES)
        self._thin = {"tokens": thin, "bin": thin}
        """By suffix, how many tokens one that is written stands for."""
        for seed, (stem, name) in enumerate(sources.items()):
            write_mean_segment(
                self._work / "map" / stem,
                extent.sources[name],
                token_bytes=extent.token_bytes,
                thin=thin,
                seed=seed,
                near=bool(extent.band_ranges),
            )
        self._written = list(calls)
        self._plan = Plan(
            generation="g",
            fingerprint="",
            dtype={2: "uint16", 4: "int32"}[extent.token_bytes],
            texts=False,
            segments=tuple(
                _planned_segment(stem, name, extent.sources[name]) for stem, name in sources.items()
            ),
        )
        self._plan.save(self._work)

    def map(self) -> Requests:
        """Return the requests of the map: attempts, records, segments."""
        task = GroupTask(name="split", members=(), dtype="")
        calls = self._finish("map", [task], _prepare_attempt, self._work, GroupRecord)
        rejects = sum(
            min(source.rejects, source.segments) for source in self._extent.sources.values()
        )
        total = self._total(self._written) + Requests(put=rejects)
        return total + self._total(calls, tasks=self._extent.splits)

    def group(self, later: Extent) -> Requests:
        """Return the requests of merging segments into groups."""
        total, counted = Requests(), 0
        for segment in sorted(self._plan.segments, key=lambda segment: -segment.rows)[
            :MOST_GROUPED
        ]:
            task = GroupTask(name=segment.stem, members=(segment.stem,), dtype=self._plan.dtype)
            calls = self._finish("group", [task], prepare_group, self._work, GroupRecord)
            read, made = _divided(calls, "/map/")
            source, groups = self._extent.sources[segment.source], later.sources[segment.source]
            members = source.segments / groups.segments
            pieces = self._pieces(source.tokens / groups.segments)
            total += self._total(read) + Requests(get=pieces) * source.segments
            total += self._total(made, tasks=groups.segments, growth=members)
            counted += source.segments
        return total * (self._extent.segments / counted)

    def ranges(self, cut: int, after: SourceSize) -> Requests:
        """Return the requests of cutting the one source into ranges.

        Args:
            cut: How many.
            after: One of them.
        """
        (segment,) = self._plan.segments
        source = self._extent.sources[segment.source]
        tasks = [
            RangeTask(
                name=f"r{index}", plan=self._plan.name, numbers=(0,), index=index, total=cut,
                drops=(),
            )
            for index in _spread(cut)
        ]  # fmt: skip
        calls = self._finish("ranges", tasks, prepare_range, self._output, RangeRecord)
        read, made = _divided(calls, "/map/")
        pieces = self._pieces(after.tokens / after.segments)
        return (
            self._total(read, tasks=cut, ran=len(tasks))
            + Requests(get=pieces) * (source.segments * cut)
            + self._total(
                made,
                tasks=cut * after.segments,
                ran=len(tasks),
                growth=source.segments / after.segments,
            )
        )

    def _pieces(self, tokens: float) -> float:
        """Return how often each member's file of tokens is read again for these in all."""
        return tokens * self._extent.token_bytes // TOKEN_BYTES_AT_ONCE

    def dedup(self) -> Requests:
        """Return the requests of dedup and drops."""
        extent, total = self._extent, Requests()
        inputs: tuple[str, ...] = ()
        for band, ranges, bands, rows in (
            (TEXT, extent.text_ranges, 1, "texts"),
            (0, extent.band_ranges, NUM_BANDS, "signed"),
        ):
            tasks = [
                Task(
                    name=f"{band}-{index}", phase="dedup", plan=self._plan.name, band=band,
                    index=index, ranges=ranges, edges=band != TEXT and not extent.slot_ranges,
                )
                for index in _spread(ranges)
            ]  # fmt: skip
            calls = self._finish("dedup", tasks, prepare_task, self._output, TaskRecord)
            mean = sum(
                getattr(source, rows) / source.segments for source in extent.sources.values()
            )
            growth = extent.total(rows) / max(mean, 1)
            total += self._total(calls, tasks=ranges * bands, ran=len(tasks), growth=growth)
            inputs = inputs or tuple(f"dedup/{task.name}" for task in tasks[:1])
        if ranges := extent.drop_ranges:
            task = Task(name="d", phase="drops", plan=self._plan.name, ranges=ranges, inputs=inputs)
            calls = self._finish("drops", [task], prepare_task, self._output, TaskRecord)
            read, made = _divided(calls, "/dedup/")
            total += self._total(read, tasks=ranges * extent.dedup_tasks)
            total += self._total(made, tasks=ranges)
            self._drops = (f"drops/{task.name}",) * ranges
        return total

    def slots(self, *, more: float) -> Requests:
        """Return the requests of the slots of signatures.

        Args:
            more: How many times the segments the run has.
        """
        extent, dropped = self._extent, Deduplicated(drops=self._drops)
        tasks = [
            Task(
                name=f"{index}", phase="slots", plan=self._plan.name, index=index,
                ranges=extent.slot_ranges,
                inputs=dropped.drops_within(Range.of(index, extent.slot_ranges)),
            )
            for index in _spread(extent.slot_ranges)
        ]  # fmt: skip
        calls = self._finish("slots", tasks, prepare_task, self._output, TaskRecord)
        segments, made = _divided(calls, "/map/")
        count = {"tasks": extent.slot_ranges, "ran": len(tasks)}
        mean = sum(source.signed / source.segments for source in extent.sources.values())
        return self._total(segments, **count) * more + self._total(
            made, **count, growth=extent.total("signed") / max(mean, 1)
        )

    def merge(self) -> Requests:
        """Return the requests of the number of shards, of what is held out, of the shards."""
        total = Requests()
        for segment in self._plan.segments:
            name, source = segment.source, self._extent.sources[segment.source]
            holdout = hash_bound(source.held / max(source.documents, 1))
            first = len(self._calls)
            num_shards(self._plan, name, work=self._work, shard_tokens=1 << 62)
            if holdout:
                drops = [drop_path(self._work, reference) for reference in self._drops]
                find_held_out({0: segment.path(self._work)}, holdout, EVERYTHING, drops=drops)
            total += self._total(self._calls[first:])
            sized: set[str] = set()
            for split, shards in (
                (TRAIN, self._extent.shards[name]),
                (VALIDATION, self._extent.validation[name]),
            ):
                tasks = [
                    MergeTask(
                        name=f"{split}-{segment.stem}-{index}", plan=self._plan.name, source=name,
                        split=split, index=index, total=shards, holdout=holdout,
                        drops=Deduplicated(drops=self._drops).drops_within(Range.of(index, shards)),
                    )
                    for index in _spread(shards)
                ]  # fmt: skip
                calls = self._finish("merge", tasks, prepare_merge, self._output, MergeRecord)
                # Both are one phase, in which a size is asked for once.
                calls = [call for call in calls if not (call.size_alone and call.key in sized)]
                sized = {call.key for call in calls if call.size_alone}
                total += self._total(calls, tasks=shards, ran=len(tasks), growth=source.segments)
            total += Requests(put=min(source.rejects, self._extent.shards[name]))
        return total

    def examples(self) -> Requests:
        """Return the requests for the report's examples, which are at the front of an audit."""
        first = len(self._calls)
        for segment in self._plan.segments:
            stem = segment.path(self._work)
            open_table(with_suffix(stem, "examples"))
            open_rows(with_suffix(stem, "audit"), slice(0, MOST_KEPT))
        return self._total(self._calls[first:])

    def _finish(
        self,
        phase: str,
        tasks: Sequence[Any],
        prepare: Callable[[Any], RunTask],
        argument: RemotePath,
        kind: type[Any],
    ) -> list[Call]:
        """Run tasks as a phase does, and return the calls, listings of the phase the first time."""
        if not tasks:
            return []
        first = len(self._calls)
        phases = Phases(self._work, cast(Runner, _InProcess()), stream=io.StringIO())
        phases.finish(phase, tasks, prepare, argument, record_type=kind, complete=lambda _: True)
        seen = phase in self._phases
        self._phases.add(phase)
        return [
            call for call in self._calls[first:] if not (seen and call.key.endswith(f"/{phase}"))
        ]

    def _total(
        self, calls: Sequence[Call], *, tasks: float = 1, ran: int = 1, growth: float = 1
    ) -> Requests:
        """Return what all tasks request.

        Args:
            calls: Those of the tasks that ran.
            tasks: The number of all.
            ran: Of those that ran.
            growth: How much larger the files are that all segments make.
        """
        total, processes = Requests(), min(self._workers, tasks)
        for call in calls:
            folder, name = call.key.split("/")[-2:]
            times = tasks / ran
            if folder == "plan":  # which each process reads once
                times = processes
            elif folder == WORK and name in self._phases:  # the driver's listing
                times = 1
            elif folder == "map" and name.partition(".")[0] in self._segments:
                # Each process remembers the sizes of segments' files.
                times = processes if call.size_alone else times
                times *= self._segments[name.partition(".")[0]]
            thin = self._thin.get(name.rpartition(".")[2], 1)
            asked = replace(call.requests, bytes=call.requests.bytes * thin)
            size = call.written + max(0, call.written - TABLE_BYTES) * (growth * thin - 1)
            total += (upload(size) if call.written else asked) * times
        return total


def _prepare_attempt(work: RemotePath) -> RunTask:
    """Return a task of the map without its split."""

    def do(task: GroupTask) -> None:
        with begin_attempt(work, task.name, run="", description=task.name):
            record = GroupRecord(stem="", files={})
            write_json(work / "map" / f"{task.name}.json", sealed(record))

    return do


def _divided(calls: Sequence[Call], folder: str) -> tuple[list[Call], list[Call]]:
    """Return the calls for files in a folder, and the others."""
    inside = [call for call in calls if folder in call.key]
    return inside, [call for call in calls if folder not in call.key]


def _spread(total: int) -> list[int]:
    """Return at most MOST_TASKS of the numbers below a total, evenly spread."""
    num = min(total, MOST_TASKS)
    return [(2 * index + 1) * total // (2 * num) for index in range(num)]


def _planned_segment(stem: str, name: str, source: SourceSize) -> PlannedSegment:
    """Return the segment as the plan lists it, with the sums of its source, which tasks add up."""
    return PlannedSegment(
        stem=stem, source=name, rows=round(source.records), documents=round(source.documents),
        tokens=round(source.tokens), longest=0, rejects=0, held_bytes=round(source.kept_bytes),
        table_bytes=0, sieved=SieveCounts(),
    )  # fmt: skip


def write_mean_segment(
    stem: RemotePath, source: SourceSize, *, token_bytes: int, thin: float, seed: int, near: bool
) -> None:
    """Write the segment of mean size of a source.

    Args:
        stem: Its files.
        source: The source.
        token_bytes: Bytes of a token.
        thin: How many tokens are written as one.
        seed: Of its signatures; those of two segments must not be equal.
        near: Whether it has signatures.
    """
    rng = np.random.default_rng(0)
    documents, texts, records, signed = (
        max(1, round(getattr(source, name) / source.segments))
        for name in ("documents", "texts", "records", "signed")
    )
    order, holdout = _hashes(rng, documents), rng.permutation(_hashes(rng, documents))
    by_holdout = np.argsort(holdout)
    tokens = np.full(documents, max(1, round(source.tokens / source.segments / thin / documents)))
    tokens = tokens.astype(np.int32)
    keys = {
        "documents": {"order": order, "holdout": holdout, "tokens": tokens},
        "holdout": {"holdout": holdout[by_holdout], "row": by_holdout, "order": order[by_holdout]},
        "hashes": {"hash_high": _hashes(rng, texts), "row": np.arange(texts) % documents},
        "audit": {"order": _hashes(rng, records)},
    }
    for suffix, columns in keys.items():
        if suffix in source.tables:
            write_table(with_suffix(stem, suffix), _repeated(source.tables[suffix], columns))
    write_table(with_suffix(stem, "examples"), source.tables["examples"].slice(0, records))
    write_table(with_suffix(stem, "bins"), bins_table(order, tokens))
    stem.with_name(f"{stem.name}.tokens").write(bytes(int(tokens.sum()) * token_bytes))
    if near:
        rng = np.random.default_rng(seed)
        orders, row = _hashes(rng, signed), np.zeros(signed)
        slots = np.zeros((signed, NUM_SLOTS), np.uint8)
        write_slots(with_suffix(stem, "slots"), Signers(orders, row, slots))
        first, others = (
            rng.permutation(_hashes(rng, rows)) for rows in (signed, min(signed, MOST_SIGNED))
        )
        write_bands(with_suffix(stem, "bands"), [first, *[others] * (NUM_BANDS - 1)], order=orders)


def _hashes(rng: np.random.Generator, num: int) -> np.ndarray:
    """Return hashes (uint64[num]), sorted, as even as real ones."""
    steps = np.cumsum(rng.standard_exponential(num + 1))
    hashes: np.ndarray = (steps[:-1] / steps[-1] * 2.0**64).astype(np.uint64)
    return hashes


def _repeated(table: pa.Table, columns: dict[str, np.ndarray]) -> pa.Table:
    """Return the rows of a table again and again, some columns replaced, which say how many."""
    num = len(next(iter(columns.values())))
    if not len(table):
        return table
    rows = pa.concat_tables([table] * -(-num // len(table))).slice(0, num)
    for name, values in columns.items():
        field = table.schema.field(name)
        index = table.schema.get_field_index(name)
        rows = rows.set_column(index, field, pa.array(values).cast(field.type))
    return rows
