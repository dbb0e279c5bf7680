"""Dedup as a part of a run: the tasks of its phases, in order, and their results.

dedup        ranges of the text hash, and of each band
known        documents that share a band with one of an earlier generation, compared with it
components   all but the smallest of each component   (--clusters components)
drops        the documents to drop, each once, by order
slots        the slots of the signatures that are left for later generations
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.dedup.bands import EDGES
from pipelines.dedup.exact import num_ranges
from pipelines.dedup.minhash import NUM_BANDS
from pipelines.dedup.tasks import (
    TEXT,
    ComponentsRecord,
    ComponentsTask,
    DedupRecord,
    DedupTask,
    DropsRecord,
    DropsTask,
    KnownRecord,
    KnownTask,
    SlotsRecord,
    SlotsTask,
    prepare_components,
    prepare_dedup,
    prepare_drops,
    prepare_known,
    prepare_slots,
)
from pipelines.engine.phases import Phases
from pipelines.engine.records import complete_files
from pipelines.segments.plan import Plan, task_name
from pipelines.segments.rows import DUPLICATE, NEAR_DUPLICATE
from pipelines.segments.segment import SieveCounts
from shards.errors import UserError
from shards.manifest import TableEntry
from shards.range import Range
from shards.storage.remote import AnyPath

BAND_ROWS_PER_TASK = 2_000_000
"""Rows of a band that a task takes at most: some 0.1 GB above the size of an idle worker."""

CANDIDATES_PER_TASK = 1_000_000
"""Candidates of earlier generations that a task compares at most."""

SLOTS_PER_TASK = 500_000
"""Documents whose slots a task writes at most: about 0.1 GB."""

DROPS_PER_TASK = 1_000_000
"""Most drops of one drop file; a document that several tasks found counts once for each."""


@dataclass(frozen=True, kw_only=True)
class Deduplicated:
    """The results of dedup."""

    drops: tuple[str, ...] = ()
    """References of the final drop files."""
    records: Sequence[DropsRecord] = ()
    signatures: tuple[TableEntry, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    """For report.json: groups by size, candidates, components."""

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
    """The phases of dedup of one run."""

    def __init__(
        self,
        phases: Phases,
        plan: Plan,
        output: AnyPath,
        *,
        dedup: str,
        clusters: str,
        threshold: float,
    ) -> None:
        """Prepare them.

        Args:
            phases: Runs the tasks.
            plan: The segments.
            output: The folder of the dataset.
            dedup: none, exact or minhash, as --dedup says.
            clusters: local or components, as --clusters says.
            threshold: Lowest similarity of near-duplicates.

        Raises:
            UserError: Components are asked for, and there are earlier generations.
        """
        self._phases = phases
        self._plan = plan
        self._output = output
        self._dedup = dedup
        self._threshold = threshold
        self._near = dedup == "minhash"
        self._components = self._near and clusters == "components"
        self._sieved = [segment.sieved for segment in plan.segments]
        if self._components and plan.earlier:
            raise UserError(
                "--clusters components cannot be appended to: which documents of a cluster are "
                "dropped would change with every generation. Use --clusters local (the default), "
                "or make the dataset again from all of its input with --overwrite"
            )

    def run(self) -> Deduplicated:
        """Run the phases and return their results."""
        if self._dedup == "none" or not self._plan.segments:
            return Deduplicated()
        tasks = [*self._tasks(TEXT)]
        if self._near:
            tasks += [task for band in range(NUM_BANDS) for task in self._tasks(band)]
        records: dict[str, DedupRecord] = self._finish("dedup", tasks, DedupRecord, prepare_dedup)
        near = {task.name: records[task.name] for task in tasks if task.band != TEXT}
        exact = [records[task.name] for task in tasks if task.band == TEXT]
        known = self._known(near)
        components = self._connect(near) if self._components else {}
        drops = self._drops(
            {f"dedup/{name}": record.drops for name, record in records.items()}
            | {f"known/{name}": record.drops for name, record in known.items()}
            | {f"components/{name}": record.drops for name, record in components.items()}
        )
        signatures: list[DedupRecord | SlotsRecord] = [*records.values()]
        signatures += self._slots(near.values(), drops).values()
        references = tuple(f"drops/{name}" for name in drops)
        figures: dict[str, Any] = {"exact": {"groups": _sizes(exact)}}
        if self._near:
            figures["near"] = self._near_figures(near.values(), known.values())
        if components:
            figures["near"]["components"] = _sizes(components.values())
        if self._plan.earlier:
            figures["known"] = _known_figures(drops.values())
        return Deduplicated(
            drops=references,
            records=tuple(drops.values()),
            signatures=tuple(entry for record in signatures for entry in record.signatures),
            figures=figures,
        )

    def _finish(
        self, phase: str, tasks: Sequence[Any], record_type: type[Any], prepare: Any
    ) -> dict[str, Any]:
        return self._phases.finish(
            phase, tasks, prepare, self._output, record_type=record_type, complete=self._complete
        )

    def _complete(self, record: Any) -> bool:
        entries = (*getattr(record, "signatures", ()), *getattr(record, "files", ()))
        return complete_files(self._output, entries)

    def _name(self, *parts: Any) -> str:
        return task_name(self._plan.name, *parts)

    def _tasks(self, band: int) -> Iterable[DedupTask]:
        """Yield the tasks of the text hash or of a band."""
        ranges = _ranges(self._sieved, band)
        threshold, drops = self._threshold, not self._components
        for index in range(ranges):
            yield DedupTask(
                name=self._name("dedup", band, index, ranges, threshold, drops),
                plan=self._plan.name,
                band=band,
                index=index,
                ranges=ranges,
                threshold=threshold,
                drops=drops,
            )

    def _connect(self, near: Iterable[str]) -> dict[str, ComponentsRecord]:
        """Return the record of the components."""
        inputs = tuple(f"dedup/{name}" for name in near)
        task = ComponentsTask(
            name=self._name("components", inputs), plan=self._plan.name, inputs=inputs
        )
        return self._finish("components", [task], ComponentsRecord, prepare_components)

    def _known(self, near: Mapping[str, DedupRecord]) -> dict[str, KnownRecord]:
        """Return the records of the comparisons with earlier generations."""
        inputs = tuple(f"dedup/{name}" for name, record in near.items() if record.candidates)
        candidates = sum(record.candidates for record in near.values())
        if not candidates:
            return {}
        ranges = num_ranges(candidates, rows_per_task=CANDIDATES_PER_TASK)
        tasks = [
            KnownTask(
                name=self._name("known", index, ranges, self._threshold, inputs),
                plan=self._plan.name,
                index=index,
                ranges=ranges,
                threshold=self._threshold,
                inputs=inputs,
            )
            for index in range(ranges)
        ]
        return self._finish("known", tasks, KnownRecord, prepare_known)

    def _slots(
        self, near: Iterable[DedupRecord], drops: Mapping[str, DropsRecord]
    ) -> dict[str, SlotsRecord]:
        """Return the records of the slots of the signatures."""
        if not self._near or self._components:
            return {}
        dropped = Deduplicated(drops=tuple(f"drops/{name}" for name in drops))
        equal = sum(
            counts[DUPLICATE] for record in drops.values() for counts in record.dropped.values()
        )
        # Some of those that are equal have no signature; and each hash has a document with one.
        hashes = sum(entry.rows for record in near for entry in record.signatures)
        signed = sum(counts.signed for counts in self._sieved)
        ranges = num_ranges(max(signed - equal, hashes // NUM_BANDS), rows_per_task=SLOTS_PER_TASK)
        tasks = []
        for index in range(ranges):
            mine = dropped.drops_within(Range.of(index, ranges))
            tasks.append(
                SlotsTask(
                    name=self._name("slots", index, ranges, mine),
                    plan=self._plan.name,
                    index=index,
                    ranges=ranges,
                    drops=mine,
                )
            )
        return self._finish("slots", tasks, SlotsRecord, prepare_slots)

    def _drops(self, rows: Mapping[str, int]) -> dict[str, DropsRecord]:
        """Return the records of the final drop files, by name."""
        inputs = tuple(name for name, count in rows.items() if count)
        ranges = num_ranges(sum(rows.values()), rows_per_task=DROPS_PER_TASK)
        tasks = [
            DropsTask(
                name=self._name("drops", index, ranges, inputs),
                plan=self._plan.name,
                index=index,
                ranges=ranges,
                inputs=inputs,
            )
            for index in range(ranges)
        ]
        return self._finish("drops", tasks, DropsRecord, prepare_drops)

    def _near_figures(
        self, near: Iterable[DedupRecord], known: Iterable[KnownRecord]
    ) -> dict[str, Any]:
        """Return groups by size, of all bands together, and how many candidates there were."""
        records = list(near)
        counts: list[DedupRecord | KnownRecord] = [*records, *known]
        return {
            "band_groups": _sizes(records),
            "compared": sum(part.compared for part in counts),
            "failed": sum(part.failed for part in counts),
        }


def _ranges(sieved: Iterable[SieveCounts], band: int) -> int:
    """Return into how many ranges the text hash or the hash of a band is cut."""
    if band == TEXT:
        return num_ranges(sum(counts.texts for counts in sieved))
    rows = sum(counts.signed for counts in sieved)
    return min(num_ranges(rows, rows_per_task=BAND_ROWS_PER_TASK), EDGES)


def num_tasks(plan: Plan, dedup: str) -> int:
    """Return how many tasks of dedup read from every segment of a plan; `dedup` as in Dedup."""
    sieved = [segment.sieved for segment in plan.segments]
    exact = 0 if dedup == "none" else _ranges(sieved, TEXT)
    if dedup != "minhash":
        return exact
    signed = sum(counts.signed for counts in sieved)
    return exact + NUM_BANDS * _ranges(sieved, 0) + num_ranges(signed, rows_per_task=SLOTS_PER_TASK)


def _known_figures(records: Iterable[DropsRecord]) -> dict[str, int]:
    """Return how many documents of all sources are dropped because of earlier generations."""
    counts: Counter[str] = Counter()
    for record in records:
        for known in record.known.values():
            counts.update(known)
    return {"exact": counts[DUPLICATE], "near": counts[NEAR_DUPLICATE]}


def _sizes(records: Iterable[DedupRecord | ComponentsRecord]) -> dict[str, int]:
    """Return the number of groups by size, of all records together."""
    sizes: Counter[str] = Counter()
    for record in records:
        sizes.update(record.groups)
    return dict(sizes)
