"""The items of the three stages of dedup, with their input and output files.

    dedup   reads a range of the text hash, or of a band's hash, of all segments; writes .drops,
            signatures, and candidates to compare with documents of earlier generations (.known)
    known   reads a range of the earlier documents' order of all .known files; writes .drops
    drops   reads a range of the order of all .drops files; writes .drops with each document once

An item's files are named after the item and are in its stage's folder under .work. References to
the files have the form "stage/name".
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
from pipelines.dedup.exact import (
    duplicate_mask,
    group_by_hash,
    group_sizes,
    read_hashes,
    signature_table,
    size_histogram,
)
from pipelines.dedup.near import (
    group_rows,
    near_drops,
    pair_with_smallest,
    read_range,
    refs_of,
    segments_of,
)
from pipelines.dedup.previous import (
    CANDIDATES,
    SeenHashes,
    candidate_table,
    previous_pairs,
    seen_hashes,
    seen_texts,
)
from pipelines.dedup.signatures import band_table
from pipelines.segments.index import SegmentIndex, load_index
from shards.manifest import WORK, TableEntry
from shards.paths import join_checked as path_within
from shards.range import Range
from shards.storage.remote import AnyPath
from shards.tables import write_entry

EXACT_HASH = -1
"""The value of `band` for an item of the text hash."""

_DESCRIPTIONS = {
    "known": "documents similar to earlier ones, order",
    "drops": "drops of order",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupItem:
    """One of the ranges into which a stage divides a hash or the order."""

    name: str
    stage: str
    segment_index: str
    """The name of the segment index."""
    index: int = 0
    """The number of the range."""
    ranges: int = 1
    inputs: tuple[str, ...] = ()
    """References to the files of earlier stages that the item reads (known, drops)."""
    band: int = EXACT_HASH
    """The band whose hash is divided (dedup)."""
    threshold: float = 0.0
    """The minimum similarity of near-duplicates (dedup, known)."""

    def __str__(self) -> str:
        of = "text hash" if self.band == EXACT_HASH else f"band {self.band}"
        what = f"dedup of {of}" if self.stage == "dedup" else _DESCRIPTIONS[self.stage]
        return f"{what} range {self.index} of {self.ranges}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupRecord:
    """The counts and files of a finished item."""

    drops: int = 0
    """The number of rows of the drop file."""
    candidates: int = 0
    """The number of rows of the file of candidates."""
    groups: Mapping[str, int] = field(default_factory=dict)
    """The number of groups of documents that share a hash, by size."""
    compared: int = 0
    """The number of comparisons of a document with a smaller one, one for each shared band."""
    failed: int = 0
    """The number of these comparisons in which the similarity was too low."""
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The number of drops by source and reason (drops)."""
    seen_before: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The number of drops of documents whose text is also in an earlier generation, by source and
    reason (see drops.py)."""
    signatures: tuple[TableEntry, ...] = ()
    files: tuple[TableEntry, ...] = ()
    """The files for later stages."""

    @property
    def entries(self) -> tuple[TableEntry, ...]:
        """The entries of all files."""
        return *self.signatures, *self.files


def prepare_dedup(output: AnyPath) -> Callable[[DedupItem], DedupRecord]:
    """Return the function that runs the items of dedup for the dataset in `output`."""
    return partial(run_item, output)


def run_item(output: AnyPath, item: DedupItem) -> DedupRecord:
    """Write the files of an item and return its record."""
    index = load_index(output / WORK, item.segment_index)
    return _STAGES[item.stage](_ItemFiles(output, index, item))


@dataclass(frozen=True, slots=True)
class _ItemFiles:
    """An item, with the files that it reads and writes."""

    output: AnyPath
    index: SegmentIndex
    item: DedupItem

    @property
    def within(self) -> Range:
        return Range.of(self.item.index, self.item.ranges)

    @property
    def range_bits(self) -> int:
        return (self.item.ranges - 1).bit_length()

    def segment_files(self, suffix: str) -> Sequence[AnyPath]:
        return self.index.paths(self.output / WORK, suffix)

    def inputs(self, suffix: str) -> list[AnyPath]:
        return [self.output / WORK / f"{reference}.{suffix}" for reference in self.item.inputs]

    def write(self, suffix: str, table: pa.Table) -> TableEntry:
        path = self.output / WORK / self.item.stage / f"{self.item.name}.{suffix}"
        return write_entry(path, table, directory=self.output)

    def sign(self, kind: str, table: pa.Table) -> TableEntry:
        """Write a signature table for the dedup of later generations, and return its entry."""
        name = f"{kind}-{self.item.index:05}.arrow"
        path = path_within(self.output, self.index.generation, "signatures", name)
        return write_entry(path, table, directory=self.output)


def _dedup(files: _ItemFiles) -> DedupRecord:
    return _equal_texts(files) if files.item.band == EXACT_HASH else _similar_texts(files)


def _equal_texts(files: _ItemFiles) -> DedupRecord:
    found = read_hashes(files.segment_files("hashes"), files.within)
    groups = list(group_by_hash(found, range_bits=files.range_bits))
    repeated = duplicate_mask(len(found.high), groups)
    seen = seen_texts(
        files.output, files.index.previous, files.within, high=found.high, low=found.low
    )
    mask = repeated | seen
    seen &= ~repeated  # only the first copy of a text counts as seen before
    drops = drop_table(
        found.order[mask],
        found.segment[mask],
        found.row[mask],
        reason=EXACT,
        seen_before=seen[mask],
    )
    return DedupRecord(
        drops=len(drops),
        groups=group_sizes(found.copies, groups),
        signatures=(files.sign("exact", signature_table(found, mask)),),
        files=(files.write("drops", drops),),
    )


def _similar_texts(files: _ItemFiles) -> DedupRecord:
    item, slots = files.item, files.segment_files("slots")
    rows, starts = read_range(
        files.segment_files("bands"), item.band, index=item.index, ranges=item.ranges
    )
    hashes = seen_hashes(
        files.output, files.index.previous, item.band, files.within, hashes=rows.hash
    )
    places = hashes.places(rows.hash)
    seen = places >= 0
    smallest = ~seen
    candidates, drop_parts = _seen_rows(files, hashes, places, rows, starts)
    sizes = [np.zeros(0, np.int64)]
    compared, failed = len(drop_parts[0]), 0
    for groups in group_rows(rows, range_bits=files.range_bits):
        for pairs in pair_with_smallest(
            rows, starts, groups, slots=slots, seen=seen, threshold=item.threshold
        ):
            drop_parts.append(near_drops(slots, pairs.document[pairs.passed]))
            compared += len(pairs.passed)
            failed += int((~pairs.passed).sum())
        sizes.append(np.diff(np.flatnonzero(groups.first), append=len(groups.rows)))
        smallest[groups.rows[~groups.first]] = False
    drops = pa.concat_tables(drop_parts).sort_by("order")
    tables = {"drops": drops}
    if files.index.previous:
        tables["known"] = candidates
    entries = tuple(files.write(suffix, table) for suffix, table in tables.items())
    del drop_parts, tables
    table = band_table(rows, smallest, within=files.within)
    return DedupRecord(
        drops=len(drops),
        candidates=len(candidates),
        groups=size_histogram(np.concatenate(sizes)),
        compared=compared,
        failed=failed,
        signatures=(files.sign(f"band-{item.band:02}", table),),
        files=entries,
    )


def _seen_rows(
    files: _ItemFiles, seen: SeenHashes, places: np.ndarray, rows: BandRows, starts: np.ndarray
) -> tuple[pa.Table, list[pa.Table]]:
    """Return the candidates, and the drops, among the rows whose hash is in `seen`.

    `places` (int[n]) gives each row's place in `seen`, or -1. If there is a threshold, the rows are
    candidates, which are compared later; otherwise they are drops.
    """
    chosen = np.flatnonzero(places >= 0)
    if files.item.threshold:
        segment = segments_of(chosen, starts)
        found = candidate_table(seen, places[chosen], segment, rows.slot_row[chosen])
        return found, [DROPS.empty_table()]
    documents = refs_of(rows, starts, chosen)
    drops = near_drops(files.segment_files("slots"), documents, seen_before=True)
    return CANDIDATES.empty_table(), [drops]


def _compare_with_previous(files: _ItemFiles) -> DedupRecord:
    slots, threshold = files.segment_files("slots"), files.item.threshold
    parts, compared, failed = [DROPS.empty_table()], 0, 0
    for pairs in previous_pairs(files.inputs("known"), files.within):
        compared += int(pairs.bands.sum())
        for part, passed in pairs.similar(
            files.output, files.index.previous, slots, threshold=threshold
        ):
            parts.append(near_drops(slots, pairs.documents(slots, part, passed), seen_before=True))
            failed += int(pairs.bands[part][~passed].sum())
    drops = pa.concat_tables(parts).sort_by("order")
    return DedupRecord(
        drops=len(drops), compared=compared, failed=failed, files=(files.write("drops", drops),)
    )


def _drops(files: _ItemFiles) -> DedupRecord:
    drops = merge_drops(files.inputs("drops"), files.within)
    dropped, seen = count_drops(drops, [segment.source for segment in files.index.segments])
    return DedupRecord(
        drops=len(drops), dropped=dropped, seen_before=seen, files=(files.write("drops", drops),)
    )


_STAGES: Mapping[str, Callable[[_ItemFiles], DedupRecord]] = {
    "dedup": _dedup,
    "known": _compare_with_previous,
    "drops": _drops,
}
