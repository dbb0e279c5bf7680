"""ProcessSplits reads a split, judges the documents in it batch by batch, and writes segments.

An item is a split of a large file, or many small files (packs.py). Its record is written last. The
name of the record is a fingerprint of everything that affects the bytes of the segments, so a later
run finds the record and skips the item.
"""

import hashlib
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from pipelines.corpus.batcher import DocumentBatcher, add_raw_heads, group_records
from pipelines.corpus.input_counts import InputCounts
from pipelines.corpus.options import SEGMENTS, Options, semantic_options
from pipelines.corpus.sources import Corpus
from pipelines.corpus.versions import segment_versions
from pipelines.execute.attempt import ATTEMPT
from pipelines.execute.item import last_line
from pipelines.execute.workers import MAX_DEATHS
from pipelines.process.builder import SegmentBuilder
from pipelines.read.reader import RecordReader
from pipelines.read.split import FileSplit
from pipelines.segments.audit import audit_schema
from pipelines.segments.rows import FilterResult
from pipelines.segments.segment import Segment
from pipelines.steps.step import CpuClock, apply_steps, split_result
from pipelines.steps.step_pipeline import take_steps
from shards.errors import UserError
from shards.manifest import WORK
from shards.memory import is_out_of_memory
from shards.storage.files import canonical_json
from shards.storage.remote import AnyPath

_CUT = {
    "truncated": "is cut off",
    "bad-archive": "is a damaged archive",
    "unterminated-array": "holds a JSON array that is not closed",
}
"""The problem of a file whose end is missing, by the reason of the damage at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The values that all items of a run share."""

    options: Options
    corpora: Mapping[str, Corpus]
    """The corpus of each source."""
    versions: Mapping[str, str]
    """The versions that affect bytes, in the driver."""
    run: str = ""
    """The identifier of this run of the driver."""

    @property
    def work(self) -> AnyPath:
        """The folder of the run's intermediate files."""
        return self.options.output / WORK


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessItem:
    """The splits of one item, and the name of its record."""

    name: str
    splits: tuple[FileSplit, ...]
    """One split, or one for each of several small files of the same source."""
    max_deaths: int = MAX_DEATHS
    """How many workers of this machine may die at the item before the run ends."""

    def __str__(self) -> str:
        first, last = self.splits[0], self.splits[-1]
        if len(self.splits) == 1:
            return f"map of bytes {first.start} to {first.end} of {first.path}"
        return f"map of {len(self.splits)} files, from {first.path} to {last.path}"

    @property
    def source(self) -> str:
        """The source of the files."""
        return self.splits[0].source

    @property
    def size(self) -> int:
        """The number of bytes in the splits; for Parquet files, the number of rows."""
        return sum(split.end - split.start for split in self.splits)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRecord:
    """The facts about a processed split."""

    source: str
    relative: str
    start: int
    end: int
    file_bytes: int
    mtime_ns: int = 0
    etag: str = ""
    crc32c: int
    unsampled: int = 0
    """The number of records that --sample leaves out, which are not counted elsewhere."""
    tokens: int = 0
    """The number of tokens in the documents of the split, except repeated texts of the same
    segment."""
    bytes: int = 0
    """The approximate size of the split's records in the input."""
    unread_bytes: int = 0
    """The approximate size of those of the split's records that cannot be read."""
    cut: str = ""
    """Why an unknown number of records is missing at the end; "" if none are missing."""
    failure: str = ""
    """Why a watch leaves out the file for now; no segment contains a part of the file."""

    @classmethod
    def failed(cls, split: FileSplit, message: str) -> "SplitRecord":
        """Return the record of a split that cannot be processed."""
        return cls._of_split(split, crc32c=0, failure=message)

    @classmethod
    def of(cls, split: FileSplit, reader: RecordReader, **results: Any) -> "SplitRecord":
        """Return the record of a split that a reader has read to its end.

        Args:
            split: The split.
            reader: The reader of the split.
            results: The fields that contain the amounts of the split.
        """
        if reader.crc32c is None:
            raise RuntimeError(f"{split.path}: the reader ended before the split did")
        return cls._of_split(split, crc32c=reader.crc32c, cut=reader.truncation or "", **results)

    @classmethod
    def _of_split(cls, split: FileSplit, **results: Any) -> "SplitRecord":
        return cls(
            source=split.source,
            relative=split.relative,
            start=split.start,
            end=split.end,
            file_bytes=split.file_bytes,
            mtime_ns=split.mtime_ns,
            etag=split.etag,
            **results,
        )

    @property
    def why_cut(self) -> str:
        """The end of a message about a file whose end is missing; "" for a whole file."""
        return f"{_CUT[self.cut]}: an unknown number of records is missing" if self.cut else ""

    @property
    def name(self) -> tuple[str, str]:
        """The source and path of the file, as in `InputFile.name`."""
        return self.source, self.relative


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRecord:
    """The results of an item, which are written after all its other files."""

    splits: tuple[SplitRecord, ...]
    """The splits, in the order of the item."""
    seconds: float = 0.0
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    """The CPU seconds of the process, by stage."""
    versions: Mapping[str, str] = field(default_factory=dict)
    segments: tuple[Segment, ...] = ()

    @property
    def source(self) -> str:
        """The source of the splits."""
        return self.splits[0].source

    @property
    def unsampled(self) -> int:
        """The number of records that --sample leaves out."""
        return sum(split.unsampled for split in self.splits)


def record_names(
    items: Iterable[Sequence[FileSplit]],
    corpus: Corpus,
    *,
    versions: Mapping[str, str],
    fingerprints: Mapping[str, Any],
) -> list[str]:
    """Return the fingerprints of items, which do not depend on the machine or number of workers.

    Args:
        items: The splits of each item.
        corpus: The corpus of the items' source.
        versions: The versions that affect bytes.
        fingerprints: The fingerprints that replace the values of options that name paths.
    """
    shared = {
        "corpus": corpus.spec.name,
        "options": semantic_options(corpus.options, fingerprints, affects=(SEGMENTS,)),
        "versions": dict(versions),
    }
    start = hashlib.sha256(canonical_json(shared))
    names = []
    for splits in items:
        digest = start.copy()
        digest.update(
            canonical_json(
                [
                    [split.source, split.relative, split.file_bytes, split.start, split.end]
                    for split in splits
                ]
            )
        )
        names.append(digest.hexdigest()[:24])
    return names


def prepare_splits(job: Job) -> Callable[[ProcessItem], ProcessRecord]:
    """Return the function that processes items of a job."""
    return SplitProcessor(job).process


class SplitProcessor:
    """Processes items in one worker process, and owns the models of the process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._folder = job.work / "map"
        self._batchers = {source: DocumentBatcher(corpus) for source, corpus in job.corpora.items()}
        self._pipeline = take_steps(job.options, run=job.run)
        own = segment_versions(self._pipeline.library_versions, job.corpora)
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
            schema=audit_schema(self._pipeline.metrics),
            keep_texts=options.keep_dropped,
        )

    def process(self, item: ProcessItem) -> ProcessRecord:
        """Write the segments of an item and return its record.

        In a watch a file that cannot be processed gets a record with the reason, because one file
        must not stop the run. Errors about the output are raised, because they are not the file's
        fault. If a worker has died at an item, or a watch cannot process several files, each file
        is processed separately to find the bad one.
        """
        try:
            if ATTEMPT.deaths:
                return self._one_by_one(item)
            return self._process_item(item, item.name)
        except Exception as error:
            if not self._leaves_out(error):
                raise
            return self._one_by_one(item) if len(item.splits) > 1 else _failed(item, error)

    def _leaves_out(self, error: Exception) -> bool:
        """Return whether to leave out a file because of an error, instead of ending the run."""
        options = self._job.options
        of_output = str(options.output) in str(error)
        return options.watch and not of_output and not is_out_of_memory(error)

    def _one_by_one(self, item: ProcessItem) -> ProcessRecord:
        """Process each file of an item separately, and return one record."""
        parts: list[ProcessRecord] = []
        for number, split in enumerate(item.splits):
            one = replace(item, splits=(split,))
            ATTEMPT.report_place(str(one))
            try:
                self._check_deaths(one)
                # The names differ from those of the whole item, because Beam may still run an
                # attempt that it considers lost.
                parts.append(self._process_item(one, f"{item.name}-{number:05}"))
            except Exception as error:
                if not self._leaves_out(error):
                    raise
                parts.append(_failed(one, error))
        cpu_seconds: Counter[str] = Counter()
        for part in parts:
            cpu_seconds.update(part.cpu_seconds)
        return ProcessRecord(
            splits=tuple(split for part in parts for split in part.splits),
            seconds=round(sum(part.seconds for part in parts), 3),
            cpu_seconds=dict(cpu_seconds),
            versions=dict(self._job.versions),
            segments=tuple(segment for part in parts for segment in part.segments),
        )

    def _check_deaths(self, item: ProcessItem) -> None:
        """Check that fewer than MAX_DEATHS workers of a watch have died at this file.

        Raises:
            UserError: MAX_DEATHS workers have died, so the watch leaves out the file.
        """
        deaths = ATTEMPT.deaths.count(str(item))
        if self._job.options.watch and deaths >= MAX_DEATHS:
            raise UserError(f"{deaths} workers died one after the other at the {item}")

    def _process_item(self, item: ProcessItem, stem: str) -> ProcessRecord:
        """Write an item's segments, with names that begin with `stem`; return the item's record."""
        started, clock = time.monotonic(), CpuClock()
        corpus = self._job.corpora[item.source]
        readers = [(split, corpus.reader(split)) for split in item.splits]
        builder, amounts = self._make_builder(), InputCounts()
        stems = (self._folder / f"{stem}-{number:04}" for number in itertools.count())
        batches = self._batches(readers, amounts, clock)
        segments = tuple(self._segments(batches, builder, stems, clock))
        splits = tuple(
            SplitRecord.of(
                split,
                reader,
                tokens=builder.tokens_by_path[split.relative],
                **amounts.of(split.relative),
            )
            for split, reader in readers
        )
        if self._job.options.watch and not self._job.options.skip_unreadable:
            _check_ends(splits)
        return ProcessRecord(
            splits=splits,
            seconds=round(time.monotonic() - started, 3),
            cpu_seconds=clock.shares("read"),
            versions=dict(self._job.versions),
            segments=segments,
        )

    def _batches(
        self,
        readers: Iterable[tuple[FileSplit, RecordReader]],
        amounts: InputCounts,
        clock: CpuClock,
    ) -> Iterator[tuple[pa.RecordBatch, list[FilterResult]]]:
        """Yield batches of documents that pass all steps, and the results for the other rows.

        Args:
            readers: The splits of one source, each with its reader.
            amounts: Counts records and bytes.
            clock: Measures the time of each step.
        """
        for group in group_records(readers):
            batcher = self._batchers[group[0].split.source]
            pieces = batcher.sample(group, amounts.unsampled)
            documents, rejected = split_result(batcher.to_batch(pieces))
            kept, dropped = apply_steps(documents, self._pipeline.steps, clock)
            results = [add_raw_heads(result, pieces) for result in (rejected, *dropped)]
            amounts.add(pieces, results)
            yield kept, results

    @staticmethod
    def _segments(
        batches: Iterable[tuple[pa.RecordBatch, list[FilterResult]]],
        builder: SegmentBuilder,
        stems: Iterator[AnyPath],
        clock: CpuClock,
    ) -> Iterator[Segment]:
        """Write batches as segments, and yield each segment."""
        for kept, results in batches:
            with clock.time("segment"):
                builder.add(kept, results)
                full = [builder.close(next(stems))] if builder.is_full else []
            yield from full
        if not builder.is_empty:
            with clock.time("segment"):
                last = builder.close(next(stems))
            yield last


def _check_ends(splits: Iterable[SplitRecord]) -> None:
    """Check that no file is cut off.

    Raises:
        UserError: The end of a file is missing; the caller puts the file's name before the message.
    """
    for split in splits:
        if split.cut:
            raise UserError(split.why_cut)


def _failed(item: ProcessItem, error: Exception) -> ProcessRecord:
    """Return the record of an item whose only split cannot be processed."""
    message = str(error) if isinstance(error, UserError) else last_line(error)
    return ProcessRecord(splits=(SplitRecord.failed(item.splits[0], message),))
