"""The tasks that follow links between near-duplicates.

    StarTask    a range of the order: one pass of the connected components  ─▶  .edges, last .drops
    MatesTask   a count: dropped documents of which nothing similar was kept

Files and records are named as those of dedup_tasks.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from pipelines.dedup.components import Edges, Stars, large_star, roots, small_star
from pipelines.dedup.drops import DROPS, GONE, Drops, drop_path
from pipelines.dedup.exact import histogram
from pipelines.dedup.near import ALL, Members, edge_path, looked_up, near_drops, segment_links
from pipelines.segments.plan import Plan, load_plan
from pipelines.segments.range import EVERYTHING, Range
from pipelines.segments.sparse import side_by_side
from pipelines.segments.tables import open_between, open_table, write_entry
from shards.manifest import WORK, TableEntry
from shards.records import sealed
from shards.storage.files import write_json
from shards.storage.remote import AnyPath

FIRST, SMALL, LARGE, LAST = "first", "small", "large", "last"
"""The passes of the components: small star of all links, small, large, drops of what is found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StarTask:
    """One range of the order in one pass of the components."""

    name: str
    plan: str
    kind: str
    index: int
    ranges: int
    inputs: tuple[str, ...]
    """The files of the pass before; those of the first are links."""

    def __str__(self) -> str:
        return f"components, {self.kind} pass, order range {self.index} of {self.ranges}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StarRecord:
    """What a pass found in a range."""

    checksum: int
    """Of the edges that it was given."""
    drops: int
    groups: Mapping[str, int]
    """Components by size (last pass)."""
    files: tuple[TableEntry, ...]
    """What it left for the next pass or for merge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatesTask:
    """All links of a sample of documents."""

    name: str
    plan: str
    linked: int
    inputs: tuple[str, ...]
    drops: tuple[str, ...]

    def __str__(self) -> str:
        return "count of documents without a similar one that is kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatesRecord:
    """Near-duplicates of the sample, and those that are similar to nothing kept."""

    documents: int
    alone: int


def prepare_links(output: AnyPath) -> Callable[[StarTask | MatesTask], None]:
    """Return the function that runs these tasks of the run in `output`."""
    return partial(run_links, output)


def run_links(output: AnyPath, task: StarTask | MatesTask) -> None:
    """Write a task's files, then its record."""
    work = output / WORK
    plan = load_plan(work, task.plan)
    if isinstance(task, StarTask):
        path, star = work / "components", _run_star(output, plan, task)
        write_json(path / f"{task.name}.json", sealed(star))
    else:
        path, mates = work / "mates", _run_mates(work, plan, task)
        write_json(path / f"{task.name}.json", sealed(mates))


def _run_star(output: AnyPath, plan: Plan, task: StarTask) -> StarRecord:
    work = output / WORK
    within = Range.of(task.index, task.ranges)
    parts = side_by_side(
        lambda name: _edges_within(edge_path(work, name), within), task.inputs, where=work
    )
    if task.kind == FIRST:
        parts += _within_segments(work, plan, within, linked=ALL)
    stars = Stars.of(Edges.concatenate(parts))
    del parts
    path = f"components/{task.name}"
    target, drops = edge_path(work, path), DROPS.empty_table()
    sizes: dict[str, int] = {}
    if task.kind == LAST:
        members, counts = roots(stars)
        drops = near_drops(plan.paths(work, "slots"), _members(stars.edges[members]))
        target, table = drop_path(work, path), drops
        sizes = histogram(counts)
    elif task.kind == LARGE:
        table = large_star(stars).table()
    else:
        table = small_star(stars).both_ways().table()
    return StarRecord(
        checksum=stars.checksum(),
        drops=len(drops),
        groups=sizes,
        files=(write_entry(target, table, directory=output),),
    )


def _run_mates(work: AnyPath, plan: Plan, task: MatesTask) -> MatesRecord:
    parts = side_by_side(
        lambda name: Edges.of(open_table(edge_path(work, name))), task.inputs, where=work
    )
    parts += _within_segments(work, plan, EVERYTHING, linked=task.linked)
    stars = Stars.of(Edges.concatenate(parts))
    smaller = Members(stars.edges.to_order, *_split(stars.edges.to_place))
    slots = plan.paths(work, "slots")
    row = looked_up(slots, "row", segment=smaller.segment, signer=smaller.signer)
    drops = Drops.among([drop_path(work, name) for name in task.drops], np.unique(smaller.order))
    kept = row != GONE
    for number in np.unique(smaller.segment).tolist():
        mine = smaller.segment == number
        kept[mine] &= ~np.isin(row[mine], drops.rows(number))
    starts = np.flatnonzero(stars.first)
    mates = np.add.reduceat(kept, starts, dtype=np.int64) if len(starts) else starts
    return MatesRecord(documents=len(starts), alone=int((mates == 0).sum()))


def _edges_within(path: AnyPath, within: Range) -> Edges:
    return Edges.of(open_between(path, "order", low=within.low, high=within.high))


def _members(edges: Edges) -> Members:
    return Members(edges.order, *_split(edges.place))


def _split(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (place >> np.uint64(32)).astype(np.uint32), place.astype(np.uint32)


def _within_segments(work: AnyPath, plan: Plan, within: Range, *, linked: int) -> list[Edges]:
    return segment_links(
        plan.paths(work, "links"),
        plan.paths(work, "slots"),
        low=within.low,
        high=within.high,
        linked=linked,
    )
