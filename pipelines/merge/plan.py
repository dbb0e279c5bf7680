"""The plan of WriteShards: chooses the number of shards, and lists the items that write them."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipelines.dedup.drops import drop_path
from pipelines.dedup.plan import DedupResult
from pipelines.execute.stage import Plan, Stage
from pipelines.merge.holdout import holdout_threshold
from pipelines.merge.items import MergeItem, MergeRecord, SlotItem
from pipelines.merge.ranges import cut_into_ranges
from pipelines.segments.index import SegmentIndex, item_name
from pipelines.segments.segment import NUM_BINS, with_suffix
from shards.manifest import TRAIN, VALIDATION, WORK, TableEntry
from shards.merged import min_shards
from shards.range import Range
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map
from shards.tables import column, open_table

_BINS_AT_ONCE = 1000


@dataclass(frozen=True, kw_only=True)
class Sharding:
    """The options that decide how sources are divided into shards."""

    shards: int
    """The number of shards per source; 0 chooses the number by tokens."""
    shard_tokens: int
    """The maximum number of tokens of a shard."""
    validation: float
    """The share of the documents that is held out."""
    fixed: Mapping[str, int] = field(default_factory=dict)
    """The numbers of shards, by source, that are known in advance; used only if `shards` is 0."""


@dataclass(frozen=True, kw_only=True)
class MergeResult:
    """The results of the merge."""

    records: Mapping[str, Sequence[MergeRecord]] = field(default_factory=dict)
    """The records of training shards, and then those of validation shards, by source."""
    signatures: tuple[TableEntry, ...] = ()
    """The slots tables, with which later generations are compared."""


def merge(
    index: SegmentIndex, dedup: DedupResult, output: AnyPath, sharding: Sharding
) -> Plan[MergeResult]:
    """Yield the stages, and return their results.

    Args:
        index: The segments.
        dedup: The results of dedup.
        output: The folder of the dataset.
        sharding: The options for dividing sources into shards.
    """
    work = output / WORK
    shards = {
        source: sharding.shards
        or sharding.fixed.get(source)
        or num_shards(index, source, work=work, shard_tokens=sharding.shard_tokens)
        for source in index.sources
    }
    cut = yield from cut_into_ranges(index, output, shards=shards, dedup=dedup)
    items: dict[str, list[MergeItem]] = {}
    for source in index.sources:
        holdout = holdout_threshold(
            index,
            source,
            work=work,
            drops=[drop_path(work, name) for name in dedup.drops],
            dropped=dedup.dropped(source),
            fraction=sharding.validation,
        )
        # Segments that are cut into ranges lack the documents that dedup dropped.
        drops = dedup if cut[source] is index else DedupResult()
        items[source] = _items(cut[source], source, drops, shards=shards[source], holdout=holdout)
    slots = _slot_items(index, dedup)
    records = yield Stage("merge", [*itertools.chain(*items.values()), *slots])
    return MergeResult(
        records={source: [records[item.name] for item in each] for source, each in items.items()},
        signatures=tuple(entry for item in slots for entry in records[item.name].signatures),
    )


def _slot_items(index: SegmentIndex, dedup: DedupResult) -> list[SlotItem]:
    """Return the items that write the slots tables."""
    total, items = dedup.slot_ranges, []
    for place in range(total):
        drops = dedup.drops_within(Range.of(place, total))
        name = item_name("slots", index.name, place, total, drops)
        items.append(
            SlotItem(name=name, segment_index=index.name, index=place, total=total, drops=drops)
        )
    return items


def _items(
    index: SegmentIndex, source: str, dedup: DedupResult, *, shards: int, holdout: int
) -> list[MergeItem]:
    """Return the items of a source; `index` lists the segments that they read."""
    held = max(1, -(-shards * holdout >> 64)) if holdout else 0

    def item(split: str, place: int, total: int) -> MergeItem:
        drops = dedup.drops_within(Range.of(place, total))
        return MergeItem(
            name=item_name("merge", index.name, source, split, place, total, holdout, drops),
            segment_index=index.name,
            source=source,
            split=split,
            index=place,
            total=total,
            holdout=holdout,
            drops=drops,
        )

    splits: Sequence[tuple[str, int]] = ((TRAIN, max(shards, 1)), (VALIDATION, held))
    return [item(split, place, total) for split, total in splits for place in range(total)]


def num_shards(index: SegmentIndex, source: str, *, work: AnyPath, shard_tokens: int) -> int:
    """Return the number of shards, the smallest power of two that keeps each within `shard_tokens`.

    Tokens are counted in the segments' bins, as they were before dedup across segments. Within a
    bin, tokens are assumed to be evenly spread. The limit is never below the longest document.
    There are fewer than two shards per document; so if the limit is about as long as a document, a
    shard with two documents may exceed it.

    Args:
        index: The segments.
        source: The source.
        work: The folder of intermediate files.
        shard_tokens: The maximum number of tokens of a shard.
    """
    segments = [index.segments[number] for number in index.numbers(source)]
    documents = sum(segment.documents for segment in segments)
    if not documents:
        return 0
    limit = max([shard_tokens, *(segment.longest for segment in segments)])
    paths = [with_suffix(segment.path(work), "bins") for segment in segments]
    before = np.zeros(NUM_BINS + 1, np.int64)
    for start in range(0, len(paths), _BINS_AT_ONCE):
        part = paths[start : start + _BINS_AT_ONCE]
        for bins in concurrent_map(open_table, part, where=work):
            before += column(bins, "tokens")
    return min(min_shards(np.diff(before), limit), 1 << (documents - 1).bit_length())
