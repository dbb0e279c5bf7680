"""The items of WriteShards, which turn ranges of the order into shards and slots tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.dedup.drops import Drops, drop_path
from pipelines.dedup.previous import erased_texts
from pipelines.dedup.signatures import slot_table
from pipelines.merge.slices import (
    dropped_rows,
    find_held_out,
    merged_rows,
    take_range,
    take_rows,
)
from pipelines.segments.audit import AUDIT, Tally, tally
from pipelines.segments.histograms import Histogram, add_histograms, histograms
from pipelines.segments.index import SegmentIndex, load_index
from shards.manifest import TRAIN, VALIDATION, WORK, ShardEntry, TableEntry
from shards.merged import ShardSlice, write_merged_shard
from shards.paths import join_checked as path_within
from shards.range import Range, split_range
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map
from shards.tables import write_entry, write_parquet
from shards.text_hash import fold_spaces, text_hashes


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeItem:
    """A shard: the documents of a source in a range of the order, for training or validation."""

    name: str
    segment_index: str
    """The name of the segment index."""
    source: str
    split: str
    """The split, train or validation."""
    index: int
    total: int
    """The item covers range `index` of `total` ranges of the order."""
    holdout: int
    """The holdout hash below which documents are validation."""
    drops: tuple[str, ...]
    """References to the drop files that overlap the range."""

    def __str__(self) -> str:
        return f"merge of {self.split} shard {self.index} of {self.total} of {self.source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotItem:
    """A slots table: the MinHash slots in a range of the order, for dedup of later generations."""

    name: str
    segment_index: str
    """The name of the segment index."""
    index: int
    total: int
    drops: tuple[str, ...]
    """References to the drop files that overlap the range."""

    def __str__(self) -> str:
        return f"slots of order range {self.index} of {self.total}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRecord:
    """The files and counts of a finished item; a source without documents has no shards."""

    shards: tuple[ShardEntry, ...] = ()
    validation: tuple[ShardEntry, ...] = ()
    audit: tuple[TableEntry, ...] = ()
    rejects: tuple[TableEntry, ...] = ()
    dropped_texts: tuple[TableEntry, ...] = ()
    signatures: tuple[TableEntry, ...] = ()
    tallies: tuple[Tally, ...] = ()
    """Sums of the final audit rows, counted independently of the tallies of segments."""
    histograms: Mapping[str, Mapping[str, Histogram]] = field(default_factory=dict)
    """Histograms of the audit rows, by column and then by verdict."""

    @property
    def entries(self) -> tuple[ShardEntry | TableEntry, ...]:
        """The entries of all files."""
        tables = (*self.audit, *self.rejects, *self.dropped_texts, *self.signatures)
        return *self.shards, *self.validation, *tables


def prepare_merge(output: AnyPath) -> Callable[[MergeItem | SlotItem], MergeRecord]:
    """Return the function that runs the items of the merge for the dataset in `output`."""
    return partial(run_merge, output)


def run_merge(output: AnyPath, item: MergeItem | SlotItem) -> MergeRecord:
    """Write the files of an item and return its record."""
    return _merge(output, item) if isinstance(item, MergeItem) else _keep_slots(output, item)


def _merge(output: AnyPath, item: MergeItem) -> MergeRecord:
    """Write a shard and, if it is for training, the audit rows and rejects of its range."""
    work = output / WORK
    index = load_index(work, item.segment_index)
    within = Range.of(item.index, item.total)
    stems = index.stems(work, item.source, within=within)
    paths = [drop_path(work, name) for name in item.drops]
    if item.split == TRAIN:
        drops = Drops.load(paths, within)

        def take(place: tuple[int, AnyPath]) -> ShardSlice:
            number, stem = place
            return take_range(stem, within, dropped=drops.rows(number), holdout=item.holdout)

        slices = concurrent_map(take, stems.items(), where=work)
        return MergeRecord(
            shards=_write_shard(output, item, index, slices),
            **_write_rows(output, item, index, stems, drops),
        )
    held_out = find_held_out(stems, item.holdout, within, drops=paths)
    slices = concurrent_map(
        lambda place: take_rows(place[1], held_out[place[0]].rows), stems.items(), where=work
    )
    return MergeRecord(validation=_write_shard(output, item, index, slices))


def _keep_slots(output: AnyPath, item: SlotItem) -> MergeRecord:
    """Write the slots of the documents that are not exact duplicates."""
    work, within = output / WORK, Range.of(item.index, item.total)
    index = load_index(work, item.segment_index)
    drops = Drops.load([drop_path(work, name) for name in item.drops], within)
    table = slot_table(index.paths(work, "slots"), drops, within)
    path = path_within(output, index.generation, "signatures", f"slots-{item.index:05}.arrow")
    return MergeRecord(signatures=(write_entry(path, table, directory=output),))


def _write_shard(
    output: AnyPath, item: MergeItem, index: SegmentIndex, slices: Sequence[ShardSlice]
) -> tuple[ShardEntry, ...]:
    """Write the shard and return its entry; do nothing if the source has no documents."""
    if not any(index.segments[number].documents for number in index.numbers(item.source)):
        return ()
    name = f"{'validation-' if item.split == VALIDATION else ''}{item.index:05}"
    stem = path_within(output, index.generation, item.source, name)
    dtype = np.dtype(index.dtype).newbyteorder("<")
    shown = [replace(one, documents=one.documents.drop_columns(["holdout"])) for one in slices]
    return (write_merged_shard(stem, shown, directory=output, dtype=dtype),)


def _write_rows(
    output: AnyPath,
    item: MergeItem,
    index: SegmentIndex,
    stems: Mapping[int, AnyPath],
    drops: Drops,
) -> dict[str, Any]:
    """Write audit rows, rejects and dropped texts of a range; return these fields of the record."""
    folder, name = path_within(output, index.generation), f"{item.source}-{item.index:05}.parquet"
    segments = [index.segments[number] for number in index.numbers(item.source)]
    ranges = split_range(
        Range.of(item.index, item.total),
        rows=sum(segment.rows for segment in segments),
        held_bytes=sum(segment.held_bytes for segment in segments),
    )
    rejected = {number: stem for number, stem in stems.items() if index.segments[number].rejects}
    tallies: list[Tally] = []
    counts: list[dict[str, dict[str, dict[str, int]]]] = []

    def audit() -> Iterator[pa.Table]:
        for part in ranges:
            rows = merged_rows(stems, "audit", part, drops=drops)
            tallies.extend(tally(rows))
            counts.append(histograms(rows, rows.column_names[len(AUDIT) :]))
            yield rows

    rejects = (merged_rows(rejected, "rejects", part) for part in ranges)
    dropped = (
        _without_erased(output, index, dropped_rows(stems, part, drops=drops))
        for part in ranges
        if index.texts
    )
    files = {
        "audit": audit(),
        "rejects": (rows for rows in rejects if rows.num_rows),
        "dropped": dropped,
    }
    entries = {
        folder_name: write_parquet(path_within(folder, folder_name, name), tables, directory=output)
        for folder_name, tables in files.items()
    }
    return {
        "audit": entries["audit"],
        "rejects": entries["rejects"],
        "dropped_texts": entries["dropped"],
        "tallies": tuple(tallies),
        "histograms": add_histograms(counts),
    }


def _without_erased(output: AnyPath, index: SegmentIndex, rows: pa.Table) -> pa.Table:
    """Return dropped rows except those whose text was erased from the dataset."""
    if not any(generation.has_erased for generation in index.previous):
        return rows
    high, low = text_hashes(map(fold_spaces, rows["text"].to_pylist()))
    return rows.filter(pa.array(~erased_texts(output, index.previous, high=high, low=low)))
