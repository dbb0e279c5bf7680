"""The items of dedup, by stage; what each reads and writes.

    dedup        a range of the text hash, or of one band's hash  ─▶  .drops,
                     signatures; .known: what to compare with earlier generations
    known        a range of the order of earlier documents: the .known of all items  ─▶  .drops
    drops        a range of the order: the drops of all items, each document once  ─▶  .drops

An item's files are named after it, in the folder of its stage under .work; "stage/name" refers to
them. Its record is written last; an item whose record exists is done.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from pipelines.dedup.bands import BandRows
from pipelines.dedup.drops import (
    DROPS,
    EXACT,
    count_drops,
    drop_table,
    merge_drops,
)
from pipelines.dedup.earlier import (
    CANDIDATES,
    KnownHashes,
    candidate_table,
    known_bands,
    known_pairs,
    known_texts,
)
from pipelines.dedup.exact import (
    duplicate_mask,
    group_by_hash,
    group_sizes,
    read_candidates,
    signature_table,
    size_histogram,
)
from pipelines.dedup.near import (
    group_rows,
    members_of,
    near_drops,
    pair_with_smallest,
    read_range,
    segments_of,
)
from pipelines.dedup.signatures import band_table
from pipelines.segments.index import SegmentIndex, load_index
from shards.manifest import WORK, TableEntry
from shards.paths import join_checked as path_within
from shards.range import Range
from shards.records import sealed
from shards.storage.files import write_json
from shards.storage.remote import AnyPath
from shards.tables import write_entry

TEXT = -1
"""The band that stands for the text hash."""

_DESCRIPTIONS = {
    "known": "documents similar to earlier ones, order",
    "drops": "drops of order",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupItem:
    """One of the ranges into which a stage divides a hash or the order."""

    name: str
    stage: str
    plan: str
    index: int = 0
    ranges: int = 1
    inputs: tuple[str, ...] = ()
    """References to the files of earlier stages that it reads."""
    band: int = TEXT
    """Whose hash it is (dedup)."""
    threshold: float = 0.0
    """Least similarity of near-duplicates (dedup, known)."""

    def __str__(self) -> str:
        of = "text hash" if self.band == TEXT else f"band {self.band}"
        what = f"dedup of {of}" if self.stage == "dedup" else _DESCRIPTIONS[self.stage]
        return f"{what} range {self.index} of {self.ranges}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupRecord:
    """The counts and files of a finished item."""

    drops: int = 0
    """Rows of its drop file."""
    candidates: int = 0
    """Rows of its file of candidates."""
    groups: Mapping[str, int] = field(default_factory=dict)
    """Groups of documents with a common hash, by size."""
    compared: int = 0
    """Documents compared with a smaller one that shares the band, once per band."""
    failed: int = 0
    """Those of them that are not similar enough."""
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By source and reason, in the stage drops alone."""
    known: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """As in dropped: those of both for which an earlier generation is the reason."""
    signatures: tuple[TableEntry, ...] = ()
    files: tuple[TableEntry, ...] = ()
    """Its files for later stages."""


def prepare_dedup(output: AnyPath) -> Callable[[DedupItem], None]:
    """Return the function that runs items of the run in `output`."""
    return partial(do_item, output)


def do_item(output: AnyPath, item: DedupItem) -> None:
    """Write the files of an item, then its record."""
    record = _RUNS[item.stage](_Run(output, load_index(output / WORK, item.plan), item))
    write_json(output / WORK / item.stage / f"{item.name}.json", sealed(record))


@dataclass(frozen=True, slots=True)
class _Run:
    """An item with the places where it reads and writes."""

    output: AnyPath
    plan: SegmentIndex
    item: DedupItem

    @property
    def within(self) -> Range:
        return Range.of(self.item.index, self.item.ranges)

    @property
    def range_bits(self) -> int:
        return (self.item.ranges - 1).bit_length()

    def segment_files(self, suffix: str) -> Sequence[AnyPath]:
        return self.plan.paths(self.output / WORK, suffix)

    def inputs(self, suffix: str) -> list[AnyPath]:
        return [self.output / WORK / f"{reference}.{suffix}" for reference in self.item.inputs]

    def write(self, suffix: str, table: pa.Table) -> TableEntry:
        path = self.output / WORK / self.item.stage / f"{self.item.name}.{suffix}"
        return write_entry(path, table, directory=self.output)

    def sign(self, kind: str, table: pa.Table) -> TableEntry:
        """Write a table that later generations are compared with."""
        name = f"{kind}-{self.item.index:05}.arrow"
        path = path_within(self.output, self.plan.generation, "signatures", name)
        return write_entry(path, table, directory=self.output)


def _dedup(run: _Run) -> DedupRecord:
    return _equal_texts(run) if run.item.band == TEXT else _similar_texts(run)


def _equal_texts(run: _Run) -> DedupRecord:
    found = read_candidates(run.segment_files("hashes"), run.within)
    groups = list(group_by_hash(found, range_bits=run.range_bits))
    repeated = duplicate_mask(len(found.high), groups)
    known = known_texts(run.output, run.plan.earlier, run.within, high=found.high, low=found.low)
    mask = repeated | known
    known &= ~repeated  # however many segments a text is in, it is known once
    drops = drop_table(
        found.order[mask], found.segment[mask], found.row[mask], reason=EXACT, known=known[mask]
    )
    return DedupRecord(
        drops=len(drops),
        groups=group_sizes(found.copies, groups),
        signatures=(run.sign("exact", signature_table(found, mask)),),
        files=(run.write("drops", drops),),
    )


def _similar_texts(run: _Run) -> DedupRecord:
    item, slots = run.item, run.segment_files("slots")
    rows, starts = read_range(
        run.segment_files("bands"), item.band, index=item.index, ranges=item.ranges
    )
    earlier = known_bands(run.output, run.plan.earlier, item.band, run.within, hashes=rows.hash)
    places = earlier.places(rows.hash)
    known = places >= 0
    owners = ~known
    candidates, drop_parts = _against_earlier(run, earlier, places, rows, starts)
    sizes = [np.zeros(0, np.int64)]
    compared, failed = len(drop_parts[0]), 0
    for groups in group_rows(rows, range_bits=run.range_bits):
        for pairs in pair_with_smallest(
            rows, starts, groups, slots=slots, known=known, threshold=item.threshold
        ):
            drop_parts.append(near_drops(slots, pairs.member[pairs.passed]))
            compared += len(pairs.passed)
            failed += int((~pairs.passed).sum())
        sizes.append(np.diff(np.flatnonzero(groups.first), append=len(groups.rows)))
        owners[groups.rows[~groups.first]] = False
    drops = pa.concat_tables(drop_parts).sort_by("order")
    tables = {"drops": drops}
    if run.plan.earlier:
        tables["known"] = candidates
    files = tuple(run.write(suffix, table) for suffix, table in tables.items())
    del drop_parts, tables
    table = band_table(rows, owners, within=run.within)
    return DedupRecord(
        drops=len(drops),
        candidates=len(candidates),
        groups=size_histogram(np.concatenate(sizes)),
        compared=compared,
        failed=failed,
        signatures=(run.sign(f"band-{item.band:02}", table),),
        files=files,
    )


def _against_earlier(
    run: _Run, earlier: KnownHashes, places: np.ndarray, rows: BandRows, starts: np.ndarray
) -> tuple[pa.Table, list[pa.Table]]:
    """Return the rows whose hash is in earlier generations, at these places (int[n]).

    With a threshold they are candidates to be compared, without one they are drops at once.
    """
    chosen = np.flatnonzero(places >= 0)
    if run.item.threshold:
        segment = segments_of(chosen, starts)
        found = candidate_table(earlier, places[chosen], segment, rows.signer[chosen])
        return found, [DROPS.empty_table()]
    member = members_of(rows, starts, chosen)
    drops = near_drops(run.segment_files("slots"), member, known=True)
    return CANDIDATES.empty_table(), [drops]


def _known(run: _Run) -> DedupRecord:
    slots, threshold = run.segment_files("slots"), run.item.threshold
    parts, compared, failed = [DROPS.empty_table()], 0, 0
    for pairs in known_pairs(run.inputs("known"), run.within):
        compared += int(pairs.bands.sum())
        for part, passed in pairs.similar(run.output, run.plan.earlier, slots, threshold=threshold):
            parts.append(near_drops(slots, pairs.members(slots, part, passed), known=True))
            failed += int(pairs.bands[part][~passed].sum())
    drops = pa.concat_tables(parts).sort_by("order")
    files = (run.write("drops", drops),)
    return DedupRecord(drops=len(drops), compared=compared, failed=failed, files=files)


def _drops(run: _Run) -> DedupRecord:
    drops = merge_drops(run.inputs("drops"), run.within)
    dropped, known = count_drops(drops, [segment.source for segment in run.plan.segments])
    return DedupRecord(
        drops=len(drops), dropped=dropped, known=known, files=(run.write("drops", drops),)
    )


_RUNS: Mapping[str, Callable[[_Run], DedupRecord]] = {
    "dedup": _dedup,
    "known": _known,
    "drops": _drops,
}
