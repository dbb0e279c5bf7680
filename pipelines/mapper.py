"""The worker's side of the map: a split is read, judged batch by batch, and left as segments.

The split's record is written last; its name is a fingerprint of everything that decides the bytes
of its segments, so a later run finds it and skips the split.
"""

import hashlib
import itertools
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.document import (
    READ,
    REJECTS,
    Document,
    Rejected,
    Verdict,
    below,
    holdout_hashes,
    order_hashes,
    sample_hashes,
)
from pipelines.readers.json_array import Damage, JsonArrayReader, Record
from pipelines.options import SEGMENTS, Options, semantic
from pipelines.progress import Heartbeat
from pipelines.recipe import load_recipe
from pipelines.segment import Segment, SegmentBuilder
from pipelines.sources import Link, Split, open_input
from pipelines.stages import Chain, judge, split_verdict
from shards.errors import UserError
from shards.records import to_json
from shards.storage import canonical, write_json

STAGES_VERSION = 2
"""Raised by every change of this package that changes the bytes of a segment."""

BATCH_RECORDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What every task of a run is told."""

    module: str
    """The module that holds the corpus's RECIPE."""
    options: Options
    versions: Mapping[str, str]
    """The libraries that decide bytes, as the driver found them."""

    @property
    def work(self) -> Path:
        """The folder of the run's intermediate files."""
        return self.options.output / ".work"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapTask:
    """A split and the name that its record will have."""

    name: str
    split: Split

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
    crc32c: int
    first: int
    """Offset of the first record that starts in the range, -1 for none."""
    next: int
    """Offset at which reading stopped, -1 when there was no record to start from."""
    unsampled: int
    """Records that --sample left out; nothing else counts them."""
    seconds: float
    versions: Mapping[str, str]
    segments: tuple[Segment, ...]

    @property
    def link(self) -> Link:
        """The split's place in the chain of its file."""
        first, following = (None if at < 0 else at for at in (self.first, self.next))
        return Link(end=self.end, first=first, next=following)


def versions(chain: Chain) -> dict[str, str]:
    """Return the versions that decide the bytes of segments, by name."""
    return {
        "corpusmill stages": str(STAGES_VERSION),
        "ftfy": version("ftfy"),
        "unicode": unicodedata.unidata_version,
        **chain.engines,
    }


def record_name(split: Split, job: Job, facts: Mapping[str, Any]) -> str:
    """Return the fingerprint of a split: the same on every machine, for every number of workers."""
    identity = {
        "split": [split.source, split.relative, split.file_bytes, split.start, split.end],
        "options": semantic(job.options, facts, decides=(SEGMENTS,)),
        "versions": dict(job.versions),
    }
    return hashlib.sha256(canonical(identity)).hexdigest()[:24]


def prepare_map(job: Job) -> Callable[[MapTask], None]:
    """Return the function that maps splits of the job."""
    return Mapper(job).map


class Mapper:
    """Maps splits; holds the models of one worker process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._recipe = load_recipe(job.module)
        self._chain = Chain(job.options)
        here = versions(self._chain)
        if here != job.versions:
            odd = sorted(name for name in here if here[name] != job.versions.get(name))
            raise UserError(
                f"this worker has {odd[0]} {here[odd[0]]}, the driver {job.versions.get(odd[0])}: "
                "the dataset would depend on which worker made it. Install the same on both"
            )
        self._heartbeat = Heartbeat(job.work)

    def map(self, task: MapTask) -> None:
        """Write the segments of a split, and last its record."""
        started = time.monotonic()
        split, folder = task.split, self._job.work / "map"
        builder = SegmentBuilder(
            relative=split.relative,
            dedup=self._job.options.dedup != "none",
            threshold=self._job.options.minhash_threshold,
        )
        segments: list[Segment] = []
        unsampled = 0
        reader = JsonArrayReader(split, text_fields=self._recipe.text_fields)
        for items in _batches(reader):
            rows, skipped = self._add(builder, items, split=split)
            unsampled += skipped
            self._heartbeat.beat(task.name, items[-1].offset - split.start, rows=rows)
            if builder.full:
                segments.append(builder.close(folder / f"{task.name}-{len(segments):04}"))
        if not builder.empty:
            segments.append(builder.close(folder / f"{task.name}-{len(segments):04}"))
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
            crc32c=reader.crc32c,
            first=-1 if link.first is None else link.first,
            next=-1 if link.next is None else link.next,
            unsampled=unsampled,
            seconds=round(time.monotonic() - started, 3),
            versions=dict(self._job.versions),
            segments=tuple(segments),
        )
        write_json(folder / f"{task.name}.json", to_json(record))

    def _add(
        self, builder: SegmentBuilder, items: Sequence[Record | Damage], *, split: Split
    ) -> tuple[int, int]:
        """Judge a batch and add it; return how many rows were judged and how many not sampled."""
        items, skipped = self._sampled(items, split)
        if not items:
            return 0, skipped
        read, fallen = split_verdict(self._read(items, split))
        kept, gone = judge(read, self._chain.stages)
        gone = [fallen, *gone]
        builder.add(kept, gone)
        for verdict in gone:
            _reject(builder, verdict, split=split, items=items)
        return len(items), skipped

    def _sampled(
        self, items: Sequence[Record | Damage], split: Split
    ) -> tuple[Sequence[Record | Damage], int]:
        if self._job.options.sample >= 1:
            return items, 0
        positions = np.array([item.offset for item in items], np.int64)
        hashes = sample_hashes(split.source, split.relative, positions, seed=self._job.options.seed)
        taken = hashes < np.uint64(below(self._job.options.sample))
        return list(itertools.compress(items, taken)), int((~taken).sum())

    def _read(self, items: Sequence[Record | Damage], split: Split) -> Verdict:
        """Return the documents of the records as a batch of READ, with the reasons found so far."""
        made = [self._documents(item) for item in items]
        documents = list(itertools.chain.from_iterable(made))
        counts = [len(found) for found in made]
        texts, prompts = (
            pa.array([getattr(document, name) for document in documents], pa.large_string())
            for name in ("text", "prompt")
        )
        positions = np.repeat(np.array([item.offset for item in items], np.int64), counts)
        lengths = np.repeat(np.array([item.length for item in items], np.int64), counts)
        ordinals = np.concatenate([np.arange(count, dtype=np.int32) for count in counts])
        seed = self._job.options.seed
        columns = [
            pa.array(positions),
            pa.array(lengths),
            pa.array(ordinals),
            pa.array(
                order_hashes(
                    split.source, split.relative, positions=positions, ordinals=ordinals, seed=seed
                )
            ),
            pa.array(holdout_hashes(split.source, split.relative, positions, seed=seed)),
            pc.add(pc.binary_length(texts), pc.binary_length(prompts)),
            self._provenance(documents, self._recipe.group, pa.large_string()),
            prompts,
            texts,
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=READ)
        for name, kind in self._recipe.provenance(self._job.options).items():
            batch = batch.append_column(name, self._provenance(documents, name, kind))
        return Verdict(batch, pa.array([document.reason for document in documents], pa.string()))

    def _documents(self, item: Record | Damage) -> Sequence[Document]:
        if isinstance(item, Damage):
            return [Document("", reason=item.reason)]
        try:
            documents = self._recipe.documents(item.value, self._job.options)
        except Rejected as rejection:
            return [Document("", reason=str(rejection))]
        if any("\0" in document.text or "\0" in document.prompt for document in documents):
            return [Document("", reason="nul")]
        return documents

    @staticmethod
    def _provenance(documents: Sequence[Document], name: str, kind: pa.DataType) -> pa.Array:
        empty = "" if kind == pa.large_string() else None
        return pa.array([document.provenance.get(name, empty) for document in documents], kind)


def _batches(reader: Iterable[Record | Damage]) -> Iterator[list[Record | Damage]]:
    """Yield runs of at most BATCH_RECORDS records and little more than 4 MiB of input."""
    batch: list[Record | Damage] = []
    size = 0
    for item in reader:
        batch.append(item)
        size += item.length
        if len(batch) >= BATCH_RECORDS or size >= 4 << 20:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _reject(
    builder: SegmentBuilder,
    verdict: Verdict,
    *,
    split: Split,
    items: Sequence[Record | Damage],
) -> None:
    """Keep the place, the reason and the first bytes of what was quarantined."""
    damages = {(item.offset, item.length): item.raw for item in items if isinstance(item, Damage)}
    places = verdict.batch.select(["order", "position", "length"]).to_pylist()
    for place, reason in zip(places, verdict.reasons.to_pylist(), strict=True):
        if reason in REJECTS:
            where = (place["position"], place["length"])
            raw = damages[where] if where in damages else _raw(split.path, *where)
            builder.reject(place, reason=reason, raw=raw)


def _raw(path: str, position: int, length: int) -> bytes:
    with open_input(path) as file:
        file.seek(position)
        return file.read(min(length, 64 << 10))
