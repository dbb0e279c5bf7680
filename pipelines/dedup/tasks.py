"""The tasks that find duplicates, and the one that makes a list of them.

    DedupTask   a range of the text hash, or of one band's hash  ─▶  .drops and .edges (links)
    DropsTask   a range of the order: the drops of all tasks, each document once  ─▶  .drops

A task's files are named after it, in the folder of its phase under .work; "phase/name" refers to
them. Its record is written last; a task whose record is there is done.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from pipelines.dedup.components import Edges
from pipelines.dedup.drops import DROPS, EXACT, count_drops, drop_path, drop_table, merged_drops
from pipelines.dedup.exact import Candidates, duplicates, group_sizes, groups, signature_table
from pipelines.dedup.near import edge_path, edges_between, is_linked, near_drops, pairs, read_range
from pipelines.segments.plan import Plan, load_plan
from pipelines.segments.range import Range
from pipelines.segments.sparse import side_by_side
from pipelines.segments.tables import column, open_between, write_entry
from shards.manifest import WORK, TableEntry
from shards.records import sealed
from shards.storage.files import write_json
from shards.storage.remote import AnyPath

TEXT = -1
"""The band that stands for the text hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupTask:
    """One range of the text hash, or of the hash of one band."""

    name: str
    plan: str
    band: int
    index: int
    ranges: int
    threshold: float
    """Least similarity of a near-duplicate."""
    drops: bool
    """Write what is similar to a smaller document as drops."""
    linked: int
    """Write links of documents whose order's low 32 bits are less."""

    def __str__(self) -> str:
        what = "text hash" if self.band == TEXT else f"band {self.band}"
        return f"dedup of {what} range {self.index} of {self.ranges}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupRecord:
    """What a range came to."""

    drops: int
    """Rows of the drop file."""
    links: int
    """Rows of the file of links."""
    groups: Mapping[str, int]
    """Groups of documents with a common hash, by size."""
    compared: int
    failed: int
    """Documents compared with a smaller one that shares the band, and those not similar enough."""
    signatures: tuple[TableEntry, ...]
    files: tuple[TableEntry, ...]
    """What it left for later phases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropsTask:
    """One range of the order."""

    name: str
    plan: str
    index: int
    ranges: int
    inputs: tuple[str, ...]

    def __str__(self) -> str:
        return f"drops of order range {self.index} of {self.ranges}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropsRecord:
    """How many documents go."""

    dropped: Mapping[str, Mapping[str, int]]
    """By source and reason."""
    renamed: Mapping[str, int]
    """By source: near-duplicates that fell in their segment and have an equal elsewhere."""
    files: tuple[TableEntry, ...] = ()
    """The drop file."""


def prepare_dedup(output: AnyPath) -> Callable[[DedupTask], None]:
    """Return the function that runs dedup tasks of the run in `output`."""
    return partial(run_dedup, output)


def prepare_drops(output: AnyPath) -> Callable[[DropsTask], None]:
    """Return the function that runs drops tasks of the run in `output`."""
    return partial(run_drops, output)


def run_dedup(output: AnyPath, task: DedupTask) -> None:
    """Write what a range of hashes says of its documents, then the record."""
    plan = load_plan(output / WORK, task.plan)
    record = (_run_exact if task.band == TEXT else _run_near)(output, plan, task)
    write_json(output / WORK / "dedup" / f"{task.name}.json", sealed(record))


def run_drops(output: AnyPath, task: DropsTask) -> None:
    """Write the documents of a range of the order that go, each once, then the record."""
    work = output / WORK
    plan = load_plan(work, task.plan)
    within = Range.of(task.index, task.ranges)
    drops = merged_drops([drop_path(work, name) for name in task.inputs], within.low, within.high)
    file = write_entry(drop_path(work, f"drops/{task.name}"), drops, directory=output)
    dropped, renamed = count_drops(drops, [segment.source for segment in plan.segments])
    record = DropsRecord(dropped=dropped, renamed=renamed, files=(file,))
    write_json(work / "drops" / f"{task.name}.json", sealed(record))


def _run_exact(output: AnyPath, plan: Plan, task: DedupTask) -> DedupRecord:
    found = _candidates(plan.paths(output / WORK, "hashes"), Range.of(task.index, task.ranges))
    alike = list(groups(found, range_bits=(task.ranges - 1).bit_length()))
    mask = duplicates(len(found.high), alike)
    drops = drop_table(found.order[mask], found.segment[mask], found.row[mask], reason=EXACT)
    at = drop_path(output / WORK, f"dedup/{task.name}")
    path = output / plan.generation / "signatures" / f"exact-{task.index:05}.arrow"
    return DedupRecord(
        drops=len(drops),
        links=0,
        groups=group_sizes(found.copies, alike),
        compared=0,
        failed=0,
        signatures=(write_entry(path, signature_table(found, mask), directory=output),),
        files=(write_entry(at, drops, directory=output),),
    )


def _candidates(paths: Sequence[AnyPath], within: Range) -> Candidates:
    """Return the documents of a range of all segments."""
    parts: list[pa.Table | None] = []
    parts += side_by_side(
        lambda path: open_between(path, "hash_high", low=within.low, high=within.high),
        paths,
        where=paths[0],
    )
    ends = np.cumsum([len(part) for part in parts if part is not None]).tolist()
    found = Candidates.empty(ends[-1])
    for number, (part, end) in enumerate(zip(parts, ends, strict=True)):
        if part is not None:
            rows = slice(end - len(part), end)
            for name in ("high", "low"):
                getattr(found, name)[rows] = column(part, f"hash_{name}")
            for name in ("order", "row", "copies"):
                getattr(found, name)[rows] = column(part, name)
            found.segment[rows] = number
        parts[number] = None  # what came of a URL is copied as it is let go
    return found


def _run_near(output: AnyPath, plan: Plan, task: DedupTask) -> DedupRecord:
    work = output / WORK
    slots, bits = plan.paths(work, "slots"), (task.ranges - 1).bit_length()
    rows, starts = read_range(
        plan.paths(work, "bands"), task.band, index=task.index, ranges=task.ranges
    )
    parts, links, alike = [DROPS.empty_table()], [], []
    compared = failed = 0
    for found in pairs(rows, starts, slots=slots, range_bits=bits, threshold=task.threshold):
        member, smallest = found.member[found.passed], found.smallest[found.passed]
        if task.drops:
            parts.append(near_drops(slots, member))
        linked = is_linked(member.order, task.linked)
        links.append(edges_between(member[linked], smallest[linked]))
        alike.append(found.group)
        compared += len(found.passed)
        failed += int((~found.passed).sum())
    drops, edges = pa.concat_tables(parts), Edges.concatenate(links)
    tables = {
        drop_path(work, f"dedup/{task.name}"): drops.sort_by("order"),
        edge_path(work, f"dedup/{task.name}"): edges.table(),
    }
    return DedupRecord(
        drops=len(drops),
        links=len(edges),
        groups=group_sizes(rows.copies, alike),
        compared=compared,
        failed=failed,
        signatures=(),
        files=tuple(write_entry(path, table, directory=output) for path, table in tables.items()),
    )
