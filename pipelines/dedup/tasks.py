"""The tasks of dedup.

    DedupTask   a range of the text hash, or of one band's hash  ─▶  .drops and .edges (links)
    StarTask    a range of the order: one pass of the connected components  ─▶  .edges, last .drops
    DropsTask   a range of the order: the drops of all tasks, each document once  ─▶  .drops
    MatesTask   a count: dropped documents of which nothing similar was kept

A task's files are named after it, in the folder of its phase under .work; "phase/name" refers to
them. Its record is written last; a task whose record exists is done.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from pipelines.dedup.components import Edges, Stars, component_members, large_star, small_star
from pipelines.dedup.drops import (
    DROPS,
    EXACT,
    NO_ROW,
    Drops,
    count_drops,
    drop_path,
    drop_table,
    merge_drops,
)
from pipelines.dedup.exact import (
    Candidates,
    duplicate_mask,
    group_by_hash,
    group_sizes,
    signature_table,
    size_histogram,
)
from pipelines.dedup.near import (
    ALL,
    Members,
    edge_path,
    edges_between,
    is_linked,
    look_up,
    near_drops,
    pair_with_smallest,
    read_range,
    segment_links,
)
from pipelines.segments.plan import Plan, load_plan
from pipelines.segments.range import EVERYTHING, Range
from pipelines.segments.sparse import side_by_side
from pipelines.segments.tables import column, open_between, open_table, write_entry
from shards.manifest import WORK, TableEntry
from shards.records import sealed
from shards.storage.files import write_json
from shards.storage.remote import AnyPath

TEXT = -1
"""The band that stands for the text hash."""

FIRST, SMALL, LARGE, LAST = "first", "small", "large", "last"
"""Passes of the components: a small star of all links, small and large stars, the drops."""


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
    """Write as drops the documents similar to one before them (by order, segment, signer)."""
    linked: int
    """Write links of the documents whose order's low 32 bits are below this; 2**32: of all."""

    def __str__(self) -> str:
        what = "text hash" if self.band == TEXT else f"band {self.band}"
        return f"dedup of {what} range {self.index} of {self.ranges}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupRecord:
    """What a DedupTask found and wrote."""

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
    """Its files for later phases."""


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
    """What a StarTask found and wrote."""

    checksum: int
    """Of the edges that it read."""
    drops: int
    groups: Mapping[str, int]
    """Components by size (last pass)."""
    files: tuple[TableEntry, ...]
    """Its file for the next pass, or the drops."""


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
    """How many documents are dropped."""

    dropped: Mapping[str, Mapping[str, int]]
    """By source and reason."""
    renamed: Mapping[str, int]
    """By source: near-duplicates dropped within their segment that equal a text elsewhere."""
    files: tuple[TableEntry, ...] = ()
    """The drop file."""


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


def prepare_dedup(output: AnyPath) -> Callable[[DedupTask], None]:
    """Return the function that runs dedup tasks of the run in `output`."""
    return partial(run_dedup, output)


def prepare_links(output: AnyPath) -> Callable[[StarTask | MatesTask], None]:
    """Return the function that runs the tasks of the run in `output` that follow links."""
    return partial(run_links, output)


def prepare_drops(output: AnyPath) -> Callable[[DropsTask], None]:
    """Return the function that runs drops tasks of the run in `output`."""
    return partial(run_drops, output)


def run_dedup(output: AnyPath, task: DedupTask) -> None:
    """Write the drops and links of a range of hashes, then the record."""
    plan = load_plan(output / WORK, task.plan)
    record = (_run_exact if task.band == TEXT else _run_near)(output, plan, task)
    write_json(output / WORK / "dedup" / f"{task.name}.json", sealed(record))


def run_links(output: AnyPath, task: StarTask | MatesTask) -> None:
    """Write the files of a task, then the record."""
    work = output / WORK
    plan = load_plan(work, task.plan)
    if isinstance(task, StarTask):
        star = _run_star(output, plan, task)
        write_json(work / "components" / f"{task.name}.json", sealed(star))
    else:
        mates = _run_mates(work, plan, task)
        write_json(work / "mates" / f"{task.name}.json", sealed(mates))


def run_drops(output: AnyPath, task: DropsTask) -> None:
    """Write the documents of a range of the order to drop, each once, then the record."""
    work = output / WORK
    plan = load_plan(work, task.plan)
    paths = [drop_path(work, name) for name in task.inputs]
    drops = merge_drops(paths, Range.of(task.index, task.ranges))
    file = write_entry(drop_path(work, f"drops/{task.name}"), drops, directory=output)
    dropped, renamed = count_drops(drops, [segment.source for segment in plan.segments])
    record = DropsRecord(dropped=dropped, renamed=renamed, files=(file,))
    write_json(work / "drops" / f"{task.name}.json", sealed(record))


def _run_exact(output: AnyPath, plan: Plan, task: DedupTask) -> DedupRecord:
    work = output / WORK
    found = _candidates(plan.paths(work, "hashes"), Range.of(task.index, task.ranges))
    groups = list(group_by_hash(found, range_bits=(task.ranges - 1).bit_length()))
    mask = duplicate_mask(len(found.high), groups)
    drops = drop_table(found.order[mask], found.segment[mask], found.row[mask], reason=EXACT)
    path = drop_path(work, f"dedup/{task.name}")
    signatures = output / plan.generation / "signatures" / f"exact-{task.index:05}.arrow"
    return DedupRecord(
        drops=len(drops),
        links=0,
        groups=group_sizes(found.copies, groups),
        compared=0,
        failed=0,
        signatures=(write_entry(signatures, signature_table(found, mask), directory=output),),
        files=(write_entry(path, drops, directory=output),),
    )


def _candidates(paths: Sequence[AnyPath], within: Range) -> Candidates:
    """Return the documents of a range of all segments."""
    parts = side_by_side(
        lambda path: open_between(path, "hash_high", low=within.low, high=within.high),
        paths,
        where=paths[0],
    )
    ends = np.cumsum([len(part) for part in parts]).tolist()
    found = Candidates.empty(ends[-1])
    parts.reverse()
    for number, end in enumerate(ends):
        part = parts.pop()  # what was fetched from a URL is freed as soon as it is copied
        rows = slice(end - len(part), end)
        found.high[rows], found.low[rows] = column(part, "hash_high"), column(part, "hash_low")
        for name in ("order", "row", "copies"):
            getattr(found, name)[rows] = column(part, name)
        found.segment[rows] = number
    return found


def _run_near(output: AnyPath, plan: Plan, task: DedupTask) -> DedupRecord:
    work = output / WORK
    slots, bits = plan.paths(work, "slots"), (task.ranges - 1).bit_length()
    rows, starts = read_range(
        plan.paths(work, "bands"), task.band, index=task.index, ranges=task.ranges
    )
    drop_parts, link_parts, groups = [DROPS.empty_table()], [], []
    compared = failed = 0
    for pairs in pair_with_smallest(
        rows, starts, slots=slots, range_bits=bits, threshold=task.threshold
    ):
        member, smallest = pairs.member[pairs.passed], pairs.smallest[pairs.passed]
        if task.drops:
            drop_parts.append(near_drops(slots, member))
        linked = is_linked(member.order, task.linked)
        link_parts.append(edges_between(member[linked], smallest[linked]))
        groups.append(pairs.groups)
        compared += len(pairs.passed)
        failed += int((~pairs.passed).sum())
    drops, links = pa.concat_tables(drop_parts), Edges.concatenate(link_parts)
    tables = {
        drop_path(work, f"dedup/{task.name}"): drops.sort_by("order"),
        edge_path(work, f"dedup/{task.name}"): links.table(),
    }
    return DedupRecord(
        drops=len(drops),
        links=len(links),
        groups=group_sizes(rows.copies, groups),
        compared=compared,
        failed=failed,
        signatures=(),
        files=tuple(write_entry(path, table, directory=output) for path, table in tables.items()),
    )


def _run_star(output: AnyPath, plan: Plan, task: StarTask) -> StarRecord:
    work = output / WORK
    within = Range.of(task.index, task.ranges)
    parts = side_by_side(
        lambda name: _edges_within(edge_path(work, name), within), task.inputs, where=work
    )
    if task.kind == FIRST:
        links, slots = plan.paths(work, "links"), plan.paths(work, "slots")
        parts += segment_links(links, slots, within, linked=ALL)
    stars = Stars.of(Edges.concatenate(parts))
    del parts
    name = f"components/{task.name}"
    path, drops = edge_path(work, name), DROPS.empty_table()
    sizes: dict[str, int] = {}
    if task.kind == LAST:
        members, counts = component_members(stars)
        drops = near_drops(plan.paths(work, "slots"), _centres(stars.edges[members]))
        path, table = drop_path(work, name), drops
        sizes = size_histogram(counts)
    elif task.kind == LARGE:
        table = large_star(stars).table()
    else:
        table = small_star(stars).both_ways().table()
    return StarRecord(
        checksum=stars.checksum(),
        drops=len(drops),
        groups=sizes,
        files=(write_entry(path, table, directory=output),),
    )


def _run_mates(work: AnyPath, plan: Plan, task: MatesTask) -> MatesRecord:
    parts = side_by_side(
        lambda name: Edges.of(open_table(edge_path(work, name))), task.inputs, where=work
    )
    slots = plan.paths(work, "slots")
    parts += segment_links(plan.paths(work, "links"), slots, EVERYTHING, linked=task.linked)
    stars = Stars.of(Edges.concatenate(parts))
    smaller = Members(stars.edges.to_order, *_split_place(stars.edges.to_place))
    row = look_up(slots, "row", segment=smaller.segment, signer=smaller.signer)
    drops = Drops.among([drop_path(work, name) for name in task.drops], np.unique(smaller.order))
    kept = row != NO_ROW
    for number in np.unique(smaller.segment).tolist():
        of_segment = smaller.segment == number
        kept[of_segment] &= ~np.isin(row[of_segment], drops.rows(number))
    starts = np.flatnonzero(stars.first)
    mates = np.add.reduceat(kept, starts, dtype=np.int64) if len(starts) else starts
    return MatesRecord(documents=len(starts), alone=int((mates == 0).sum()))


def _edges_within(path: AnyPath, within: Range) -> Edges:
    return Edges.of(open_between(path, "order", low=within.low, high=within.high))


def _centres(edges: Edges) -> Members:
    return Members(edges.order, *_split_place(edges.place))


def _split_place(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the segments and the signers (uint32[n]) that places name."""
    return (place >> np.uint64(32)).astype(np.uint32), place.astype(np.uint32)
