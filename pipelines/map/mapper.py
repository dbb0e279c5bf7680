"""The worker's side of the map: a split is read, judged batch by batch and written as segments.

The split's record is written last. Its name is a fingerprint of everything that decides the bytes
of the segments, so a later run finds it and skips the split.
"""

import hashlib
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

from pipelines.corpus.code import code_hash
from pipelines.corpus.options import SEGMENTS, Options, semantic
from pipelines.corpus.sources import Corpus
from pipelines.engine.task import last_line
from pipelines.engine.workers import MOST_DEATHS
from pipelines.filters.step import Clock, run, split_verdict
from pipelines.inputs.split import Link, Split
from pipelines.map.amounts import Amounts
from pipelines.map.attempts import begin_attempt
from pipelines.map.builder import SegmentBuilder
from pipelines.map.chain import load_chain
from pipelines.map.intake import Intake, group_records, with_raws
from pipelines.readers.record import Damage, Reader, Record
from pipelines.segments.audit import audit_schema
from pipelines.segments.rows import Verdict
from pipelines.segments.segment import Segment
from shards.errors import UserError
from shards.manifest import WORK
from shards.memory import is_lack_of_memory
from shards.records import sealed
from shards.storage.files import canonical, write_json
from shards.storage.remote import AnyPath

STAGES_VERSION = 5
"""Raised with every change of this package that changes the bytes of a segment."""

_CUT = {
    "truncated": "is cut off",
    "bad-archive": "is a damaged archive",
    "unterminated-array": "holds a JSON array that is not closed",
}
"""What is wrong with a file whose end is missing, by the reason of its last damage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What all map tasks of a run share."""

    options: Options
    corpora: Mapping[str, Corpus]
    """The corpus of each source."""
    versions: Mapping[str, str]
    """The versions that decide bytes, as the driver has them."""
    run: str = ""
    """Identifies this run of the driver."""
    native: bool = False
    """Whether native loops are worth their start; they decide no bytes."""

    @property
    def work(self) -> AnyPath:
        """The folder of the run's intermediate files."""
        return self.options.output / WORK


@dataclass(frozen=True, slots=True, kw_only=True)
class MapTask:
    """A split and the name of its record."""

    name: str
    split: Split
    most_deaths: int = MOST_DEATHS
    """How many worker processes of this machine may die of it before it is given up."""

    def __str__(self) -> str:
        return f"map of bytes {self.split.start} to {self.split.end} of {self.split.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRecord:
    """The result of a split; the last file that its task writes."""

    source: str
    relative: str
    start: int
    end: int
    file_bytes: int
    mtime_ns: int = 0
    etag: str = ""
    crc32c: int
    first: int
    """Offset of the first record that starts in the range, -1 for none."""
    next: int
    """Offset at which reading stopped, -1 when there was no record to start from."""
    unsampled: int = 0
    """Records that --sample left out; they are counted nowhere else."""
    seconds: float = 0.0
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds of the process, by stage."""
    versions: Mapping[str, str] = field(default_factory=dict)
    segments: tuple[Segment, ...] = ()
    bytes: int = 0
    """About how many bytes of input its records take."""
    unread_bytes: int = 0
    """About how many of them those take that cannot be read."""
    cut: str = ""
    """Why an unknown number of records is missing at its end; empty if none is."""
    failure: str = ""
    """Why a watch leaves the file out for now; the record is then of no use but to say so."""

    @classmethod
    def failed(cls, split: Split, message: str) -> "SplitRecord":
        """Return the record of a split that cannot be mapped."""
        return cls(
            source=split.source,
            relative=split.relative,
            start=split.start,
            end=split.end,
            file_bytes=split.file_bytes,
            mtime_ns=split.mtime_ns,
            etag=split.etag,
            crc32c=0,
            first=-1,
            next=-1,
            failure=message,
        )

    @classmethod
    def of(cls, split: Split, reader: Reader, **results: Any) -> "SplitRecord":
        """Return the record of a split that a reader has read to its end.

        Args:
            split: The split.
            reader: What read it.
            results: The fields that tell what came of it, from `unsampled` on.
        """
        link = reader.link
        if link is None or reader.crc32c is None:
            raise RuntimeError(f"{split.path}: the reader ended before the split did")
        return cls(
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
            cut=reader.cut or "",
            **results,
        )

    @property
    def why_cut(self) -> str:
        """What is wrong with a file whose end is missing, as its name goes before it; or ""."""
        return f"{_CUT[self.cut]}: an unknown number of records is missing" if self.cut else ""

    @property
    def link(self) -> Link:
        """The split's place in the chain of its file."""
        first = None if self.first < 0 else self.first
        return Link(end=self.end, first=first, next=None if self.next < 0 else self.next)


def segment_versions(engines: Mapping[str, str], corpora: Mapping[str, Corpus]) -> dict[str, str]:
    """Return the versions that decide the bytes of segments, by name.

    Args:
        engines: Those of the chain's libraries.
        corpora: The corpus of each source.
    """
    modules = sorted({corpus.module for corpus in corpora.values()})
    return {
        "corpusmill stages": str(STAGES_VERSION),
        "ftfy": version("ftfy"),
        "unicode": unicodedata.unidata_version,
        **{f"code of {module}": code for module in modules if (code := code_hash(module))},
        **engines,
    }


def record_name(
    split: Split, corpus: Corpus, *, versions: Mapping[str, str], facts: Mapping[str, Any]
) -> str:
    """Return the fingerprint of a split: the same on every machine, for every number of workers.

    Args:
        split: The split.
        corpus: The corpus of its source.
        versions: The versions that decide bytes.
        facts: Fingerprints in place of the options that are paths.
    """
    identity = {
        "corpus": corpus.recipe.name,
        "split": [split.source, split.relative, split.file_bytes, split.start, split.end],
        "options": semantic(corpus.options, facts, decides=(SEGMENTS,)),
        "versions": dict(versions),
    }
    return hashlib.sha256(canonical(identity)).hexdigest()[:24]


def prepare_map(job: Job) -> Callable[[MapTask], None]:
    """Return the function that maps splits of the job."""
    return Mapper(job).map


class Mapper:
    """Maps splits; holds the models of one worker process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._folder = job.work / "map"
        self._intakes = {source: Intake(corpus) for source, corpus in job.corpora.items()}
        self._chain = load_chain(job.options, native=job.native, run=job.run)
        own = segment_versions(self._chain.engines, job.corpora)
        if own != job.versions:
            name, *_ = sorted(name for name, _ in own.items() ^ job.versions.items())
            raise UserError(
                f"this worker has {name} {own.get(name)}, the driver {job.versions.get(name)}: the "
                "dataset would depend on which worker made it. Install the same version on both"
            )
        options = job.options
        self._make_builder = partial(
            SegmentBuilder,
            dedup=options.dedup != "none",
            schema=audit_schema(self._chain.metrics),
            keep_texts=options.keep_dropped,
        )

    def map(self, task: MapTask) -> None:
        """Write the segments of a split, and last its record.

        In a watch a split that cannot be mapped has a record that says why: one file must not stop
        the others. Trouble with the output is no fault of the file.
        """
        try:
            with begin_attempt(self._job.work, task.name, run=self._job.run, description=str(task)):
                self._map(task)
        except Exception as error:
            options = self._job.options
            of_output = str(options.output) in str(error)
            if not options.watch or of_output or is_lack_of_memory(error):
                raise
            message = str(error) if isinstance(error, UserError) else last_line(error)
            self._write(task, SplitRecord.failed(task.split, message))

    def _write(self, task: MapTask, record: SplitRecord) -> None:
        write_json(self._folder / f"{task.name}.json", sealed(record))

    def _map(self, task: MapTask) -> None:
        started = time.monotonic()
        clock = Clock()
        split = task.split
        reader = self._job.corpora[split.source].reader(split)
        segments, amounts = self.segments(reader, task, clock)
        record = SplitRecord.of(
            split,
            reader,
            **asdict(amounts),
            seconds=round(time.monotonic() - started, 3),
            cpu_seconds=clock.shares("read"),
            versions=dict(self._job.versions),
            segments=tuple(segments),
        )
        self._write(task, record)

    def segments(
        self, reader: Reader, task: MapTask, clock: Clock
    ) -> tuple[list[Segment], Amounts]:
        """Write the segments of what a reader yields; return them, and how much was read."""
        split = task.split
        builder = self._make_builder(relative=split.relative)
        segments: list[Segment] = []

        def close() -> None:
            with clock.time("segment"):
                segments.append(builder.close(self._folder / f"{task.name}-{len(segments):04}"))

        intake = self._intakes[split.source]
        amounts = Amounts()
        for batch in group_records(reader):
            items, skipped = intake.sampled(batch, split)
            amounts.unsampled += skipped
            amounts.add(items, self._add(builder, items, split=split, clock=clock))
            if builder.full:
                close()
        if not builder.empty:
            close()
        return segments, amounts

    def _add(
        self,
        builder: SegmentBuilder,
        items: Sequence[Record | Damage],
        *,
        split: Split,
        clock: Clock,
    ) -> list[Verdict]:
        """Judge a batch and add it; return the verdicts on what is left out."""
        documents, rejected = split_verdict(self._intakes[split.source].read(items, split))
        kept, dropped = run(documents, self._chain.steps, clock)
        verdicts = [with_raws(verdict, items) for verdict in (rejected, *dropped)]
        with clock.time("segment"):
            builder.add(kept, verdicts)
        return verdicts
