"""The worker's side of the map: a split is read, judged batch by batch, and left as segments.

The split's record is written last; its name is a fingerprint of everything that decides the bytes
of its segments, so a later run finds it and skips the split.
"""

import hashlib
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pipelines.corpus.code import code_hash
from pipelines.corpus.options import SEGMENTS, Options, semantic
from pipelines.corpus.sources import Corpus
from pipelines.engine.progress import Heartbeat
from pipelines.engine.workers import MOST_DEATHS
from pipelines.inputs.split import Link, Split
from pipelines.map.attempts import WRITING, Attempt, AttemptPosition, attempt
from pipelines.map.builder import SegmentBuilder
from pipelines.map.clock import Clock
from pipelines.map.intake import Intake, batches
from pipelines.map.stages import Chain, judge, split_verdict
from pipelines.readers.record import Damage, Reader, Record
from pipelines.segments.audit import audit_schema
from pipelines.segments.rows import REJECTS, Verdict
from pipelines.segments.segment import Segment
from shards.errors import UserError
from shards.records import sealed
from shards.storage.files import canonical, write_json
from shards.storage.remote import AnyPath

STAGES_VERSION = 4
"""Raised by every change of this package that changes the bytes of a segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What every task of a run is told."""

    options: Options
    corpora: Mapping[str, Corpus]
    """The corpus of each source."""
    versions: Mapping[str, str]
    """The libraries that decide bytes, as the driver found them."""
    run: str = ""
    """What tells this run of the driver from others."""

    @property
    def work(self) -> AnyPath:
        """The folder of the run's intermediate files."""
        return self.options.output / ".work"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapTask:
    """A split and the name that its record will have."""

    name: str
    split: Split
    most_deaths: int = MOST_DEATHS
    """Worker processes of this machine that it may cost."""

    def __str__(self) -> str:
        return f"map of bytes {self.split.start} to {self.split.end} of {self.split.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRecord:
    """What became of a split; the last file that its task writes."""

    source: str
    relative: str
    start: int
    end: int
    file_bytes: int
    mtime_ns: int
    etag: str
    crc32c: int
    first: int
    """Offset of the first record that starts in the range, -1 for none."""
    next: int
    """Offset at which reading stopped, -1 when there was no record to start from."""
    unsampled: int
    """Records that --sample left out; nothing else counts them."""
    seconds: float
    cpu_seconds: Mapping[str, float]
    """What each stage took of the process's time, by its name."""
    versions: Mapping[str, str]
    segments: tuple[Segment, ...]
    poison: tuple[tuple[int, ...], ...] = ()
    """Start and end of the records that --skip-poison left out."""

    @property
    def link(self) -> Link:
        """The split's place in the chain of its file."""
        first, following = (None if at < 0 else at for at in (self.first, self.next))
        return Link(end=self.end, first=first, next=following)


def versions(chain: Chain, corpora: Mapping[str, Corpus]) -> dict[str, str]:
    """Return the versions that decide the bytes of segments, by name."""
    modules = sorted({corpus.module for corpus in corpora.values()})
    return {
        "corpusmill stages": str(STAGES_VERSION),
        "ftfy": version("ftfy"),
        "unicode": unicodedata.unidata_version,
        **{f"code of {module}": code for module in modules if (code := code_hash(module))},
        **chain.engines,
    }


def record_name(split: Split, job: Job, facts: Mapping[str, Any]) -> str:
    """Return the fingerprint of a split: the same on every machine, for every number of workers."""
    corpus = job.corpora[split.source]
    identity = {
        "corpus": corpus.recipe.name,
        "split": [split.source, split.relative, split.file_bytes, split.start, split.end],
        "options": semantic(corpus.options, facts, decides=(SEGMENTS,)),
        "versions": dict(job.versions),
        **corpus.facts(),
    }
    return hashlib.sha256(canonical(identity)).hexdigest()[:24]


def prepare_map(job: Job) -> Callable[[MapTask], None]:
    """Return the function that maps splits of the job."""
    return Mapper(job).map


class Mapper:
    """Maps splits; holds the models of one worker process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._intakes = {source: Intake(corpus) for source, corpus in job.corpora.items()}
        self._chain = Chain(job.options)
        here = versions(self._chain, job.corpora)
        if here != job.versions:
            odd = sorted(name for name in here if here[name] != job.versions.get(name))
            raise UserError(
                f"this worker has {odd[0]} {here[odd[0]]}, the driver {job.versions.get(odd[0])}: "
                "the dataset would depend on which worker made it. Install the same on both"
            )
        self._heartbeat = Heartbeat(job.work)

    def map(self, task: MapTask) -> None:
        """Write the segments of a split, and last its record."""
        job = self._job
        skip = job.options.skip_poison
        with attempt(job.work, task.name, run=job.run, skip=skip, name=str(task)) as watch:
            self._map(task, watch)

    def _map(self, task: MapTask, watch: Attempt) -> None:
        started = time.monotonic()
        clock = Clock()
        split, folder = task.split, self._job.work / "map"
        reader = self._job.corpora[split.source].reader(split)
        segments, unsampled = self.segments(reader, task, clock, watch=watch)
        link = reader.link
        if link is None or reader.crc32c is None:
            raise RuntimeError(f"{split.path}: the reader ended before the split did")
        record = SplitRecord(
            source=split.source,
            relative=split.relative,
            start=split.start,
            end=split.end,
            file_bytes=split.file_bytes,
            mtime_ns=split.mtime_ns,
            etag=split.etag,
            crc32c=reader.crc32c,
            first=-1 if link.first is None else link.first,
            next=-1 if link.next is None else link.next,
            unsampled=unsampled,
            seconds=round(time.monotonic() - started, 3),
            cpu_seconds=clock.shares("read"),
            versions=dict(self._job.versions),
            segments=tuple(segments),
            poison=tuple(sorted(watch.poison)),
        )
        write_json(folder / f"{task.name}.json", sealed(record))

    def segments(
        self, reader: Reader, task: MapTask, clock: Clock, *, watch: Attempt
    ) -> tuple[list[Segment], int]:
        """Write the segments of what a reader gives; return them and how much was not sampled."""
        split = task.split
        builder = SegmentBuilder(
            relative=split.relative,
            dedup=self._job.options.dedup != "none",
            threshold=self._job.options.minhash_threshold,
            schema=audit_schema(self._chain.metrics),
            keep_texts=self._job.options.keep_dropped,
        )
        segments: list[Segment] = []

        def close() -> None:
            watch.say(AttemptPosition(doing=WRITING, end=reader.done))
            with clock.time("segment"):
                stem = self._job.work / "map" / f"{task.name}-{len(segments):04}"
                segments.append(builder.close(stem))

        intake = self._intakes[split.source]
        unsampled = 0
        for found in watch.watched(batches(reader), start=split.start):
            items, skipped = intake.sampled(found, split)
            unsampled += skipped
            for step in watch.steps(items):
                self._add(builder, step, split=split, clock=clock)
            self._heartbeat.beat(task.name, reader.done, rows=len(items))
            if builder.full:
                close()
        if not builder.empty:
            close()
        return segments, unsampled

    def _add(
        self,
        builder: SegmentBuilder,
        items: Sequence[Record | Damage],
        *,
        split: Split,
        clock: Clock,
    ) -> None:
        """Judge a batch and add it."""
        read, fallen = split_verdict(self._intakes[split.source].read(items, split))
        kept, gone = judge(read, self._chain.stages, clock)
        gone = [fallen, *gone]
        with clock.time("segment"):
            builder.add(kept, gone)
            for verdict in gone:
                _reject(builder, verdict, items=items)


def _reject(builder: SegmentBuilder, verdict: Verdict, *, items: Sequence[Record | Damage]) -> None:
    """Keep the place, the reason and the first bytes of what was quarantined."""
    reasons = verdict.reasons.to_pylist()
    if REJECTS.isdisjoint(reasons):
        return
    found = {(item.offset, item.length): item for item in items}
    places = verdict.batch.select(["order", "position", "length"]).to_pylist()
    for place, reason in zip(places, reasons, strict=True):
        if reason in REJECTS:
            item = found[place["position"], place["length"]]
            builder.reject(place, reason=reason, raw=item.head)
