"""The plan of dedup: the items of its stages, in order, and their results.

dedup        ranges of the text hash, and of each band
known        documents that share a band with one of an earlier generation, compared with it
drops        the documents to drop, each once, by order
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.dedup.bands import EDGES
from pipelines.dedup.exact import MANY_RANGES, num_ranges
from pipelines.dedup.items import TEXT, DedupItem, DedupRecord
from pipelines.dedup.minhash import NUM_BANDS
from pipelines.execute.stage import Plan, Stage
from pipelines.segments.index import SegmentIndex, item_name
from pipelines.segments.rows import DUPLICATE, NEAR_DUPLICATE
from shards.manifest import TableEntry
from shards.range import Range

BAND_ROWS_PER_ITEM = 2_000_000
"""Rows of a band that an item takes: some 0.1 GB above the size of an idle worker. Of very large
corpora it takes up to MAX_GROWTH times as many, as of the other two."""

CANDIDATES_PER_ITEM = 1_000_000
"""Candidates of earlier generations that an item compares at most."""

SLOTS_PER_ITEM = 500_000
"""Documents whose slots an item writes: about 0.1 GB."""

MAX_SLICES = 10_000_000
"""Segments x items that each read a part of all of them: items take more rows to stay below it, as
far as MAX_GROWTH allows."""

TEXTS_PER_SEGMENT = 45_000
"""About as many as a split of web pages has that is as large as --split-bytes by default."""

DROPS_PER_ITEM = 1_000_000
"""Most drops of one drop file; a document that several items found counts once for each."""

Records = Mapping[str, DedupRecord]
"""The records of items, by reference: stage/name."""


@dataclass(frozen=True, kw_only=True)
class Deduplicated:
    """The results of dedup."""

    drops: tuple[str, ...] = ()
    """References of the final drop files."""
    records: Sequence[DedupRecord] = ()
    signatures: tuple[TableEntry, ...] = ()
    slot_ranges: int = 0
    """Into how many ranges of the order the slots of signatures are cut, which WriteShards writes;
    0: there are none."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """For report.json: groups by size, candidates."""

    def drops_within(self, within: Range) -> tuple[str, ...]:
        """Return references of the drop files that overlap a range; each file is a range itself."""
        num = len(self.drops)
        return self.drops[within.low * num >> 64 : ((within.high - 1) * num >> 64) + 1]

    def dropped(self, source: str) -> int:
        """Return how many documents in a source's segments are dropped."""
        return sum(sum(record.dropped[source].values()) for record in self.records)

    def known(self, source: str) -> int:
        """Return how many documents of a source are dropped because of an earlier generation."""
        return sum(sum(record.known[source].values()) for record in self.records)


class Dedup:
    """The plan of dedup."""

    def __init__(self, plan: SegmentIndex, *, dedup: str, threshold: float) -> None:
        """Prepare it.

        Args:
            plan: The segments.
            dedup: none, exact or minhash, as --dedup says.
            threshold: Lowest similarity of near-duplicates.
        """
        self._plan = plan
        self._dedup = dedup
        self._threshold = threshold
        self._near = dedup == "minhash"
        self._sieved = [segment.sieved for segment in plan.segments]
        self._many = many_ranges(sum(counts.texts for counts in self._sieved), dedup)

    def stages(self) -> Plan[Deduplicated]:
        """Yield the stages, and return their results."""
        if self._dedup == "none" or not self._plan.segments:
            return Deduplicated()
        bands = [TEXT, *(range(NUM_BANDS) if self._near else ())]
        items = [item for band in bands for item in self._tasks_of(band)]
        records = yield from self._records(items)
        pairs = [*zip(items, records.items(), strict=True)]
        exact = [record for item, (_, record) in pairs if item.band == TEXT]
        near = dict(named for item, named in pairs if item.band != TEXT)
        known = yield from self._known(near)
        drops = yield from self._drops({**records, **known})
        figures: dict[str, Any] = {"exact": {"groups": _sizes(exact)}}
        if self._near:
            compared = [*near.values(), *known.values()]
            figures["near"] = {
                "band_groups": _sizes(near.values()),
                "compared": sum(record.compared for record in compared),
                "failed": sum(record.failed for record in compared),
            }
        if self._plan.earlier:
            figures["known"] = _known_figures(drops.values())
        return Deduplicated(
            drops=tuple(drops),
            records=tuple(drops.values()),
            signatures=tuple(entry for record in records.values() for entry in record.signatures),
            slot_ranges=self._slot_ranges(near.values(), drops.values()) if self._near else 0,
            figures=figures,
        )

    def _task(self, stage: str, **settings: Any) -> DedupItem:
        """Return an item with the name that belongs to its settings."""
        name = item_name(self._plan.name, stage, settings)
        return DedupItem(name=name, stage=stage, plan=self._plan.name, **settings)

    def _records(self, items: Sequence[DedupItem]) -> Plan[Records]:
        """Yield the items of one stage, and return their records by reference."""
        name = items[0].stage
        records = yield Stage(name, items)
        return {f"{name}/{item.name}": records[item.name] for item in items}

    def _tasks_of(self, band: int) -> Iterator[DedupItem]:
        """Yield the items of the text hash or of a band."""
        ranges = self._ranges(band)
        for index in range(ranges):
            yield self._task(
                "dedup",
                index=index,
                ranges=ranges,
                band=band,
                threshold=self._threshold,
            )

    def _ranges(self, band: int) -> int:
        """Return into how many ranges the text hash or the hash of a band is cut."""
        if band == TEXT:
            return num_ranges(sum(counts.texts for counts in self._sieved), many=self._many)
        rows = sum(counts.signed for counts in self._sieved)
        ranges = num_ranges(rows, rows_per_item=BAND_ROWS_PER_ITEM, many=self._many)
        return min(ranges, EDGES)

    def _known(self, near: Records) -> Plan[Records]:
        """Yield the items, and return the records of the comparisons with earlier generations."""
        inputs = tuple(name for name, record in near.items() if record.candidates)
        if not inputs:
            return {}
        candidates = sum(record.candidates for record in near.values())
        ranges = num_ranges(candidates, rows_per_item=CANDIDATES_PER_ITEM)
        settings = {"ranges": ranges, "threshold": self._threshold, "inputs": inputs}
        return (
            yield from self._records(
                [self._task("known", index=index, **settings) for index in range(ranges)]
            )
        )

    def _drops(self, found: Records) -> Plan[Records]:
        """Yield the items, and return the records of the final drop files."""
        inputs = tuple(name for name, record in found.items() if record.drops)
        rows = sum(record.drops for record in found.values())
        ranges = num_ranges(rows, rows_per_item=DROPS_PER_ITEM)
        settings = {"ranges": ranges, "inputs": inputs}
        return (
            yield from self._records(
                [self._task("drops", index=index, **settings) for index in range(ranges)]
            )
        )

    def _slot_ranges(self, near: Iterable[DedupRecord], drops: Iterable[DedupRecord]) -> int:
        """Return into how many ranges the slots of the signatures are cut."""
        equal = sum(counts[DUPLICATE] for record in drops for counts in record.dropped.values())
        # Some of those that are equal have no signature; and each hash has a document with one.
        hashes = sum(entry.rows for record in near for entry in record.signatures)
        signed = sum(counts.signed for counts in self._sieved)
        rows = max(signed - equal, hashes // NUM_BANDS)
        return num_ranges(rows, rows_per_item=SLOTS_PER_ITEM, many=self._many)


def many_ranges(texts: int, dedup: str) -> int:
    """Return beyond how many ranges of each hash a run's items take more rows.

    It goes by the texts and not by the segments: a dataset names a file for each range, and how
    many segments there are depends on splits and on a pipeline's bundles.

    Args:
        texts: Distinct texts of all segments.
        dedup: As in Dedup.
    """
    hashes = NUM_BANDS + 2 if dedup == "minhash" else 1
    segments = texts / TEXTS_PER_SEGMENT
    return max(1, min(MANY_RANGES, int(MAX_SLICES / max(1, hashes * segments))))


def _known_figures(records: Iterable[DedupRecord]) -> dict[str, int]:
    """Return how many documents of all sources are dropped because of earlier generations."""
    counts: Counter[str] = Counter()
    for record in records:
        for known in record.known.values():
            counts.update(known)
    return {"exact": counts[DUPLICATE], "near": counts[NEAR_DUPLICATE]}


def _sizes(records: Iterable[DedupRecord]) -> dict[str, int]:
    """Return the number of groups by size, of all records together."""
    sizes: Counter[str] = Counter()
    for record in records:
        sizes.update(record.groups)
    return dict(sizes)
