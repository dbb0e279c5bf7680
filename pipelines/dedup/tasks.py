"""The tasks of dedup.

    DedupTask   a range of the text hash, or of one band's hash  ─▶  .drops and .edges (links),
                    signatures; .known: what to compare with earlier generations
    KnownTask   a range of the order of earlier documents: the .known of all tasks  ─▶  .drops
    ComponentsTask   the .edges of all tasks: their connected components  ─▶  .drops
    DropsTask   a range of the order: the drops of all tasks, each document once  ─▶  .drops
    SlotsTask   a range of the order: the slots of documents whose text is new  ─▶  signatures

A task's files are named after it, in the folder of its phase under .work; "phase/name" refers to
them. Its record is written last; a task whose record exists is done.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import BandRows
from pipelines.dedup.components import Edges, component_sizes, spanning_forest
from pipelines.dedup.drops import (
    DROPS,
    EXACT,
    Drops,
    count_drops,
    drop_path,
    drop_table,
    merge_drops,
)
from pipelines.dedup.earlier import (
    CANDIDATES,
    candidate_table,
    known_bands,
    known_pairs,
    known_path,
    known_texts,
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
    Members,
    edge_path,
    edges_between,
    group_rows,
    members_of,
    near_drops,
    pair_with_smallest,
    read_range,
    segments_of,
)
from pipelines.dedup.signatures import band_table, slot_table
from pipelines.segments.plan import Plan, load_plan
from shards.manifest import WORK, TableEntry
from shards.paths import within
from shards.range import Range
from shards.records import sealed
from shards.storage.files import write_json
from shards.storage.remote import AnyPath
from shards.storage.sparse import side_by_side
from shards.tables import column, open_between, open_table, write_entry

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
    """Write as drops the documents similar to one before them (by order, segment, signer); if not,
    edges between both."""

    def __str__(self) -> str:
        what = "text hash" if self.band == TEXT else f"band {self.band}"
        return f"dedup of {what} range {self.index} of {self.ranges}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupRecord:
    """What a DedupTask found and wrote."""

    drops: int
    """Rows of the drop file."""
    groups: Mapping[str, int]
    """Groups of documents with a common hash, by size."""
    compared: int
    failed: int
    """Documents compared with a smaller one that shares the band, and those not similar enough."""
    signatures: tuple[TableEntry, ...]
    files: tuple[TableEntry, ...]
    """Its files for later phases."""
    candidates: int = 0
    """Rows of the file of candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTask:
    """One range of the order of documents of earlier generations."""

    name: str
    plan: str
    index: int
    ranges: int
    threshold: float
    inputs: tuple[str, ...]

    def __str__(self) -> str:
        return f"documents similar to earlier ones, order range {self.index} of {self.ranges}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRecord:
    """Documents that are similar to one of an earlier generation."""

    drops: int
    compared: int
    failed: int
    """As in DedupRecord, once per band."""
    files: tuple[TableEntry, ...]
    """The drops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsTask:
    """One range of the order."""

    name: str
    plan: str
    index: int
    ranges: int
    drops: tuple[str, ...]
    """The final drop files of the range."""

    def __str__(self) -> str:
        return f"slots of order range {self.index} of {self.ranges}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotsRecord:
    """What a SlotsTask wrote."""

    signatures: tuple[TableEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentsTask:
    """All edges."""

    name: str
    plan: str
    inputs: tuple[str, ...]

    def __str__(self) -> str:
        return "components of similar documents"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentsRecord:
    """What a ComponentsTask found and wrote."""

    drops: int
    groups: Mapping[str, int]
    """Components by size."""
    files: tuple[TableEntry, ...]
    """The drops."""


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
    known: Mapping[str, Mapping[str, int]]
    """By source and reason: those of both for which an earlier generation is the reason."""
    files: tuple[TableEntry, ...] = ()
    """The drop file."""


def prepare_dedup(output: AnyPath) -> Callable[[DedupTask], None]:
    """Return the function that runs dedup tasks of the run in `output`."""
    return partial(run_dedup, output)


def prepare_components(output: AnyPath) -> Callable[[ComponentsTask], None]:
    """Return the function that connects near-duplicates of the run in `output`."""
    return partial(run_components, output)


def prepare_known(output: AnyPath) -> Callable[[KnownTask], None]:
    """Return the function that compares documents of the run in `output` with earlier ones."""
    return partial(run_known, output)


def prepare_slots(output: AnyPath) -> Callable[[SlotsTask], None]:
    """Return the function that writes the slots of signatures of the run in `output`."""
    return partial(run_slots, output)


def prepare_drops(output: AnyPath) -> Callable[[DropsTask], None]:
    """Return the function that runs drops tasks of the run in `output`."""
    return partial(run_drops, output)


def run_dedup(output: AnyPath, task: DedupTask) -> None:
    """Write the drops and links of a range of hashes, then the record."""
    plan = load_plan(output / WORK, task.plan)
    record = (_run_exact if task.band == TEXT else _run_near)(output, plan, task)
    write_json(output / WORK / "dedup" / f"{task.name}.json", sealed(record))


def run_components(output: AnyPath, task: ComponentsTask) -> None:
    """Write as drops all but the smallest document of each component, then the record."""
    work = output / WORK
    plan = load_plan(work, task.plan)
    forest = spanning_forest(Edges.of(open_table(edge_path(work, name))) for name in task.inputs)
    member = Members(forest.order, *_split_place(forest.place))
    drops = near_drops(plan.paths(work, "slots"), member)
    name = f"components/{task.name}"
    record = ComponentsRecord(
        drops=len(drops),
        groups=size_histogram(component_sizes(forest)),
        files=(write_entry(drop_path(work, name), drops, directory=output),),
    )
    write_json(work / f"{name}.json", sealed(record))


def run_known(output: AnyPath, task: KnownTask) -> None:
    """Write the drops of documents similar to those of a range of the order, then the record."""
    work = output / WORK
    plan = load_plan(work, task.plan)
    slots = plan.paths(work, "slots")
    paths = [known_path(work, name) for name in task.inputs]
    parts, compared, failed = [DROPS.empty_table()], 0, 0
    for pairs in known_pairs(paths, Range.of(task.index, task.ranges)):
        compared += int(pairs.bands.sum())
        for part, passed in pairs.similar(output, plan.earlier, slots, threshold=task.threshold):
            parts.append(near_drops(slots, pairs.members(slots, part, passed), known=True))
            failed += int(pairs.bands[part][~passed].sum())
    drops = pa.concat_tables(parts).sort_by("order")
    path = drop_path(work, f"known/{task.name}")
    record = KnownRecord(
        drops=len(drops),
        compared=compared,
        failed=failed,
        files=(write_entry(path, drops, directory=output),),
    )
    write_json(work / "known" / f"{task.name}.json", sealed(record))


def run_slots(output: AnyPath, task: SlotsTask) -> None:
    """Write the slots of a range of the order into the signatures, then the record."""
    work = output / WORK
    plan = load_plan(work, task.plan)
    within = Range.of(task.index, task.ranges)
    drops = Drops.load([drop_path(work, name) for name in task.drops], within)
    table = slot_table(plan.paths(work, "slots"), drops, within)
    path = _signature_path(output, plan, "slots", task.index)
    record = SlotsRecord(signatures=(write_entry(path, table, directory=output),))
    write_json(work / "slots" / f"{task.name}.json", sealed(record))


def _signature_path(output: AnyPath, plan: Plan, kind: str, index: int) -> AnyPath:
    return within(output, plan.generation, "signatures", f"{kind}-{index:05}.arrow")


def run_drops(output: AnyPath, task: DropsTask) -> None:
    """Write the documents of a range of the order to drop, each once, then the record."""
    work = output / WORK
    plan = load_plan(work, task.plan)
    paths = [drop_path(work, name) for name in task.inputs]
    drops = merge_drops(paths, Range.of(task.index, task.ranges))
    file = write_entry(drop_path(work, f"drops/{task.name}"), drops, directory=output)
    dropped, known = count_drops(drops, [segment.source for segment in plan.segments])
    record = DropsRecord(dropped=dropped, known=known, files=(file,))
    write_json(work / "drops" / f"{task.name}.json", sealed(record))


def _run_exact(output: AnyPath, plan: Plan, task: DedupTask) -> DedupRecord:
    work, within = output / WORK, Range.of(task.index, task.ranges)
    found = _candidates(plan.paths(work, "hashes"), within)
    groups = list(group_by_hash(found, range_bits=(task.ranges - 1).bit_length()))
    repeated = duplicate_mask(len(found.high), groups)
    known = known_texts(output, plan.earlier, within, high=found.high, low=found.low)
    mask = repeated | known
    known &= ~repeated  # however many segments a text stands in, it is known once
    drops = drop_table(
        found.order[mask], found.segment[mask], found.row[mask], reason=EXACT, known=known[mask]
    )
    path = drop_path(work, f"dedup/{task.name}")
    signatures = _signature_path(output, plan, "exact", task.index)
    return DedupRecord(
        drops=len(drops),
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
    earlier = _against_earlier(output, plan, task, rows, starts)
    owners = ~earlier.known
    drop_parts, edge_parts = [earlier.drops], list[Edges]()
    sizes = [np.zeros(0, np.int64)]
    compared, failed = earlier.compared, 0
    for groups in group_rows(rows, range_bits=bits):
        for pairs in pair_with_smallest(
            rows, starts, groups, slots=slots, known=earlier.known, threshold=task.threshold
        ):
            member, smallest = pairs.member[pairs.passed], pairs.smallest[pairs.passed]
            if task.drops:
                drop_parts.append(near_drops(slots, member))
            else:
                edge_parts.append(edges_between(member, smallest))
            compared += len(pairs.passed)
            failed += int((~pairs.passed).sum())
        sizes.append(np.diff(np.flatnonzero(groups.first), append=len(groups.rows)))
        owners[groups.rows[~groups.first]] = False
    drops = pa.concat_tables(drop_parts)
    tables = {drop_path(work, f"dedup/{task.name}"): drops.sort_by("order")}
    if not task.drops:
        tables[edge_path(work, f"dedup/{task.name}")] = Edges.concatenate(edge_parts).table()
    if plan.earlier:
        tables[known_path(work, f"dedup/{task.name}")] = earlier.candidates
    files = tuple(write_entry(path, table, directory=output) for path, table in tables.items())
    del drop_parts, edge_parts, tables
    return DedupRecord(
        drops=len(drops),
        groups=size_histogram(np.concatenate(sizes)),
        compared=compared,
        failed=failed,
        signatures=_band_signatures(output, plan, task, rows, owners),
        files=files,
        candidates=len(earlier.candidates),
    )


def _band_signatures(
    output: AnyPath, plan: Plan, task: DedupTask, rows: BandRows, owners: np.ndarray
) -> tuple[TableEntry, ...]:
    """Write what later generations are compared with: the rows (bool[n]) that own a hash."""
    if not task.drops:  # nothing is appended to a dataset whose clusters are components
        return ()
    table = band_table(rows, owners, within=Range.of(task.index, task.ranges))
    path = _signature_path(output, plan, f"band-{task.band:02}", task.index)
    return (write_entry(path, table, directory=output),)


@dataclass(frozen=True, slots=True)
class _Against:
    """What a range of a band has in common with earlier generations."""

    known: np.ndarray
    """bool[n]: the rows whose hash they have."""
    candidates: pa.Table
    """Documents to compare, if there is a threshold."""
    drops: pa.Table
    """Documents to drop, if there is none."""
    compared: int


def _against_earlier(
    output: AnyPath, plan: Plan, task: DedupTask, rows: BandRows, starts: np.ndarray
) -> _Against:
    within, slots = Range.of(task.index, task.ranges), plan.paths(output / WORK, "slots")
    found = known_bands(output, plan.earlier, task.band, within, hashes=rows.hash)
    places = found.places(rows.hash)
    known = places >= 0
    chosen = np.flatnonzero(known)
    if task.threshold:
        segment = segments_of(chosen, starts)
        candidates = candidate_table(found, places[chosen], segment, rows.signer[chosen])
        return _Against(known, candidates, DROPS.empty_table(), 0)
    member = members_of(rows, starts, chosen)
    drops = near_drops(slots, member, known=True)
    return _Against(known, CANDIDATES.empty_table(), drops, len(chosen))


def _split_place(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the segments and the signers (uint32[n]) that places name."""
    return (place >> np.uint64(32)).astype(np.uint32), place.astype(np.uint32)
