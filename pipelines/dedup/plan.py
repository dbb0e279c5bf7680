"""The plan of dedup: the items of its stages, in order, and their results.

dedup        finds texts that share a text hash, or a band's hash, by ranges of that hash
known        compares documents with those of earlier generations that share a band
drops        lists the documents to drop by order, each once
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.dedup.bands import EDGES
from pipelines.dedup.exact import MANY_RANGES, num_ranges
from pipelines.dedup.items import EXACT_HASH, DedupItem, DedupRecord
from pipelines.dedup.minhash import NUM_BANDS
from pipelines.execute.stage import Plan, Stage
from pipelines.segments.index import SegmentIndex, item_name
from pipelines.segments.rows import DUPLICATE, NEAR_DUPLICATE
from shards.manifest import TableEntry
from shards.range import Range

BAND_ROWS_PER_ITEM = 2_000_000
"""The number of rows of a band per item, which take about 0.1 GB more than an idle worker needs. In
very large corpora an item has up to MAX_GROWTH times as many rows, as do the items of text hashes
and slots."""

CANDIDATES_PER_ITEM = 1_000_000
"""The maximum number of candidates that an item compares with earlier generations."""

SLOTS_PER_ITEM = 500_000
"""The number of documents whose slots an item writes, which take about 0.1 GB."""

MAX_SLICES = 10_000_000
"""The maximum number of slices, segments x items, because each item reads a slice of every segment.
To stay below this maximum, items take more rows, as far as MAX_GROWTH allows."""

TEXTS_PER_SEGMENT = 45_000
"""The approximate number of texts in a split of web pages with the default --split-bytes."""

DROPS_PER_ITEM = 1_000_000
"""The maximum number of rows in a drop file, if each document is counted once for each item that
found it."""

Records = Mapping[str, DedupRecord]
"""The records of items, by reference: stage/name."""


@dataclass(frozen=True, kw_only=True)
class DedupResult:
    """The results of dedup."""

    drops: tuple[str, ...] = ()
    """References to the final drop files."""
    records: Sequence[DedupRecord] = ()
    """The records of the final drop files."""
    signatures: tuple[TableEntry, ...] = ()
    slot_ranges: int = 0
    """The number of ranges of the order for the slots tables, which WriteShards writes; 0 unless
    --dedup is minhash."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """The figures for report.json: groups by size, numbers of comparisons, and known texts."""

    def drops_within(self, within: Range) -> tuple[str, ...]:
        """Return references to the drop files that overlap a range; each file holds one range."""
        num = len(self.drops)
        return self.drops[within.low * num >> 64 : ((within.high - 1) * num >> 64) + 1]

    def dropped(self, source: str) -> int:
        """Return the number of dropped documents in a source's segments."""
        return sum(sum(record.dropped[source].values()) for record in self.records)


class DedupPlan:
    """The plan of dedup."""

    def __init__(self, index: SegmentIndex, *, dedup: str, threshold: float) -> None:
        """Prepare the plan.

        Args:
            index: The segments.
            dedup: The value of --dedup: none, exact or minhash.
            threshold: The minimum similarity of near-duplicates.
        """
        self._index = index
        self._dedup = dedup
        self._threshold = threshold
        self._near = dedup == "minhash"
        self._counts = [segment.dedup_counts for segment in index.segments]
        self._many = many_ranges(sum(counts.texts for counts in self._counts), dedup)

    def stages(self) -> Plan[DedupResult]:
        """Yield the stages, and return their results."""
        if self._dedup == "none" or not self._index.segments:
            return DedupResult()
        bands = [EXACT_HASH, *(range(NUM_BANDS) if self._near else ())]
        items = [
            item
            for band in bands
            for item in self._items(
                "dedup", self._ranges(band), band=band, threshold=self._threshold
            )
        ]
        records = yield from self._run_items(items)
        pairs = [*zip(items, records.items(), strict=True)]
        exact = [record for item, (_, record) in pairs if item.band == EXACT_HASH]
        near = dict(named for item, named in pairs if item.band != EXACT_HASH)
        compared = yield from self._compare(near)
        drops = yield from self._drops({**records, **compared})
        figures: dict[str, Any] = {"exact": {"groups": _sizes(exact)}}
        if self._near:
            comparing = [*near.values(), *compared.values()]
            figures["near"] = {
                "band_groups": _sizes(near.values()),
                "compared": sum(record.compared for record in comparing),
                "failed": sum(record.failed for record in comparing),
            }
        if self._index.previous:
            figures["known"] = _seen_figures(drops.values())
        return DedupResult(
            drops=tuple(drops),
            records=tuple(drops.values()),
            signatures=tuple(entry for record in records.values() for entry in record.signatures),
            slot_ranges=self._slot_ranges(near.values(), drops.values()) if self._near else 0,
            figures=figures,
        )

    def _items(self, stage: str, ranges: int, **settings: Any) -> list[DedupItem]:
        """Return an item for each range of a stage; an item's name is a hash of its settings."""
        items = []
        for index in range(ranges):
            of_item = {"index": index, "ranges": ranges, **settings}
            name = item_name(self._index.name, stage, of_item)
            items.append(
                DedupItem(name=name, stage=stage, segment_index=self._index.name, **of_item)
            )
        return items

    def _run_items(self, items: Sequence[DedupItem]) -> Plan[Records]:
        """Yield the items of one stage, and return their records by reference."""
        name = items[0].stage
        records = yield Stage(name, items)
        return {f"{name}/{item.name}": records[item.name] for item in items}

    def _ranges(self, band: int) -> int:
        """Return the number of ranges that divide the text hash or the hash of a band."""
        if band == EXACT_HASH:
            return num_ranges(sum(counts.texts for counts in self._counts), many=self._many)
        rows = sum(counts.signed for counts in self._counts)
        ranges = num_ranges(rows, rows_per_item=BAND_ROWS_PER_ITEM, many=self._many)
        return min(ranges, EDGES)

    def _compare(self, near: Records) -> Plan[Records]:
        """Yield the items that compare with earlier generations, and return their records."""
        inputs = tuple(name for name, record in near.items() if record.candidates)
        if not inputs:
            return {}
        candidates = sum(record.candidates for record in near.values())
        ranges = num_ranges(candidates, rows_per_item=CANDIDATES_PER_ITEM)
        items = self._items("known", ranges, threshold=self._threshold, inputs=inputs)
        return (yield from self._run_items(items))

    def _drops(self, found: Records) -> Plan[Records]:
        """Yield the items that write the final drop files, and return their records."""
        inputs = tuple(name for name, record in found.items() if record.drops)
        rows = sum(record.drops for record in found.values())
        ranges = num_ranges(rows, rows_per_item=DROPS_PER_ITEM)
        return (yield from self._run_items(self._items("drops", ranges, inputs=inputs)))

    def _slot_ranges(self, near: Iterable[DedupRecord], drops: Iterable[DedupRecord]) -> int:
        """Return the number of ranges of the order for the slots tables."""
        equal = sum(counts[DUPLICATE] for record in drops for counts in record.dropped.values())
        # The difference is too small if some equal texts have no signature. There are at least as
        # many documents with slots as hashes per band, because each hash has such a document.
        hashes = sum(entry.rows for record in near for entry in record.signatures)
        signed = sum(counts.signed for counts in self._counts)
        rows = max(signed - equal, hashes // NUM_BANDS)
        return num_ranges(rows, rows_per_item=SLOTS_PER_ITEM, many=self._many)


def many_ranges(texts: int, dedup: str) -> int:
    """Return the number of ranges of each hash above which items take more rows.

    The number depends on the texts and not on the segments, because each range adds a file to the
    dataset, whereas the number of segments depends on splits and on a custom pipeline's bundles.

    Args:
        texts: The number of distinct texts of all segments.
        dedup: As for DedupPlan.
    """
    hashes = NUM_BANDS + 2 if dedup == "minhash" else 1
    segments = texts / TEXTS_PER_SEGMENT
    return max(1, min(MANY_RANGES, int(MAX_SLICES / max(1, hashes * segments))))


def _seen_figures(records: Iterable[DedupRecord]) -> dict[str, int]:
    """Return, by kind, the number of dropped documents whose text earlier generations have."""
    counts: Counter[str] = Counter()
    for record in records:
        for reasons in record.seen_before.values():
            counts.update(reasons)
    return {"exact": counts[DUPLICATE], "near": counts[NEAR_DUPLICATE]}


def _sizes(records: Iterable[DedupRecord]) -> dict[str, int]:
    """Return the number of groups by size, summed over records."""
    sizes: Counter[str] = Counter()
    for record in records:
        sizes.update(record.groups)
    return dict(sizes)
