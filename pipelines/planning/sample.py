"""A timed sample of the input: pieces spread over each source go through the real stages.

Nothing of it is kept: segments are written into a temporary folder, looked at, and removed.
"""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.corpus.sources import Corpus
from pipelines.inputs.split import Link, Split
from pipelines.map.attempts import Attempt
from pipelines.map.clock import Clock
from pipelines.map.mapper import Job, Mapper, MapTask
from pipelines.readers.compressed import compression
from pipelines.readers.reading import format_of
from pipelines.readers.record import Damage, Reader, Record
from pipelines.segments.segment import Segment
from pipelines.segments.tables import open_table

SECONDS = 24.0
"""How long all sources together are sampled, about."""

PIECES = 8
"""Places of a source that are sampled."""

PIECE_BYTES = 8 << 20
"""Bytes of input, uncompressed, that are read at each of them at most."""

LEAST_SECONDS = 0.5
"""A piece is given this long at least."""

TABLES = ("documents", "holdout", "hashes", "audit", "links")
"""The suffixes of the tables that have a row a document, a text, a record, a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """What was found in the sample of one source; counts and bytes are of the sample."""

    share: float
    """How much of the source's stored bytes were read."""
    records: int
    """Rows of the audit: documents of all records, and what could not be read."""
    documents: int
    """Those that are left, duplicates within a piece left out."""
    tokens: int
    rejects: int
    texts: int
    """Distinct texts, for dedup."""
    signed: int
    links: int
    """Signatures and pairs of similar documents, for near-duplicates."""
    seconds: float
    """How long the pieces took, start of the process and of the first piece left out."""
    warm_share: float
    """How much of the source's stored bytes these seconds were spent on."""
    audit_bytes: int
    """Of the audit as Parquet."""
    kept_bytes: int
    """Of rejects, and of texts kept."""
    example_bytes: int
    """Of the examples of the largest segment: their number is bounded."""
    row_bytes: Mapping[str, float]
    """Of a row of each of a segment's tables, by suffix."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What was read of one place."""

    stored: float
    """Bytes as stored that were read."""
    seconds: float
    segments: tuple[Segment, ...]


class _Part:
    """A reader that stops after some bytes or when its time is over."""

    def __init__(self, reader: Reader, *, until: float, units: int, packed: bool) -> None:
        """Make one.

        Args:
            reader: Reads a split.
            until: When to stop, by time.monotonic.
            units: Bytes or rows, as the reader counts offsets, after which to stop.
            packed: The file is compressed. How many bytes were unpacked for a record is known only
                where `done` makes a step; so one is waited for.
        """
        self.link = Link(end=0, first=None, next=None)
        self.crc32c = 0
        self._reader = reader
        self._until = until
        self._units = units
        self._packed = packed
        self._first = self._last = -1
        self._step = (0, 0)
        self._ended = False

    @property
    def done(self) -> int:
        """How much of the split has been read so far."""
        return self._reader.done

    def __iter__(self) -> Iterator[Record | Damage]:
        """Yield what the reader yields, up to a record."""
        before = 0
        for item in self._reader:
            if self._first < 0:
                self._first = self._last = item.offset
            elif self.done != before:
                self._step = (before, self._last)
            before = self.done
            if self._enough():
                return
            yield item
            self._last = item.offset + item.length
        self._ended = True

    def _enough(self) -> bool:
        if self._packed and not self._step[0]:
            return False
        read = self._last - self._first
        return read >= self._units or (read > 0 and time.monotonic() > self._until)

    def consumed(self, split: Split) -> float:
        """Return how much of [split.start, split.end) the records make up that were yielded."""
        if self._ended:
            return float(split.end - split.start)
        if not self._packed:
            return float(self._last - self._first)
        done, unpacked = self._step
        return done * self._last / max(unpacked, 1)


def sample(
    corpora: Mapping[str, Corpus],
    splits: Mapping[str, Sequence[Split]],
    *,
    job: Job,
    seconds: float = SECONDS,
) -> dict[str, Sampled]:
    """Return what a sample of each source shows.

    Args:
        corpora: The corpus of each source.
        splits: Its splits, by source.
        job: The run.
        seconds: How long to sample, about.
    """
    with tempfile.TemporaryDirectory(prefix="corpusmill-plan-") as name:
        folder = Path(name)
        (folder / ".work" / "map").mkdir(parents=True)
        mapper = Mapper(replace(job, options=replace(job.options, output=folder)))
        return {
            source: _source(
                mapper, corpora[source], each, folder=folder, seconds=seconds / len(splits)
            )
            for source, each in splits.items()
        }


def _source(
    mapper: Mapper, corpus: Corpus, splits: Sequence[Split], *, folder: Path, seconds: float
) -> Sampled:
    chosen = _chosen(splits)
    started, pieces = time.monotonic(), list[_Piece]()
    ends = {split.path: split.end for split in splits}
    for at, split in enumerate(chosen):
        left = seconds - (time.monotonic() - started)
        if at and left < 0:
            break
        until = time.monotonic() + max(LEAST_SECONDS, left / (len(chosen) - at))
        task = MapTask(name=f"{split.source}-{at}", split=split)
        pieces.append(_piece(mapper, corpus, task, until=until, end=ends[split.path]))
    stored = sum(split.file_bytes for split in {split.path: split for split in splits}.values())
    return _summed(pieces, folder / ".work" / "map", stored=stored)


def _chosen(splits: Sequence[Split]) -> list[Split]:
    """Return at most PIECES splits, spread evenly."""
    number = min(PIECES, len(splits))
    return [splits[(2 * at + 1) * len(splits) // (2 * number)] for at in range(number)]


def _piece(mapper: Mapper, corpus: Corpus, task: MapTask, *, until: float, end: int) -> _Piece:
    """Return what is found at one place; `end` is that of the file's last split."""
    split, packed = task.split, compression(task.split.path) is not None
    ratio = split.file_bytes / max(end, 1)  # of a table: bytes a row
    if not packed and format_of(split.path, corpus.reading) != "parquet":
        # From the middle of a long split: the beginning of a file may differ from the rest of it.
        first = max(split.start, (split.start + split.end) // 2 - PIECE_BYTES)
        split = replace(split, start=first if first > split.start + PIECE_BYTES else split.start)
    units = max(1, round(PIECE_BYTES / ratio))
    part = _Part(corpus.reader(split), until=until, units=units, packed=packed)
    started = time.monotonic()
    segments, _ = mapper.segments(part, replace(task, split=split), Clock(), watch=Attempt())
    return _Piece(
        stored=part.consumed(split) * ratio,
        seconds=time.monotonic() - started,
        segments=tuple(segments),
    )


def _summed(pieces: Sequence[_Piece], folder: Path, *, stored: int) -> Sampled:
    """Return the sums of pieces whose segments lie in a folder."""
    warm = pieces[1:] or pieces
    segments = [each for piece in pieces for each in piece.segments]
    stems = [folder / each.stem for each in segments]
    tables = {
        suffix: [open_table(path) for path in _existing(stems, suffix)]
        for suffix in (*TABLES, "rejects", "texts")
    }
    audit = pa.concat_tables(tables["audit"]).unify_dictionaries() if segments else None
    return Sampled(
        share=min(1.0, sum(piece.stored for piece in pieces) / stored),
        records=sum(len(table) for table in tables["audit"]),
        documents=sum(each.documents for each in segments),
        tokens=sum(each.tokens for each in segments),
        rejects=sum(each.rejects for each in segments),
        texts=sum(each.sieved.texts for each in segments),
        signed=sum(each.sieved.signed for each in segments),
        links=sum(each.sieved.links for each in segments),
        seconds=sum(piece.seconds for piece in warm),
        warm_share=min(1.0, sum(piece.stored for piece in warm) / stored),
        audit_bytes=_parquet_bytes(audit, folder) if audit else 0,
        kept_bytes=sum(t.nbytes for suffix in ("rejects", "texts") for t in tables[suffix]),
        example_bytes=max(
            (path.stat().st_size for path in _existing(stems, "examples")), default=0
        ),
        row_bytes={suffix: _row_bytes(tables[suffix]) for suffix in TABLES if tables[suffix]},
    )


def _existing(stems: Sequence[Path], suffix: str) -> Iterator[Path]:
    return (path for stem in stems if (path := stem.with_name(f"{stem.name}.{suffix}")).exists())


def _row_bytes(tables: Sequence[pa.Table]) -> float:
    """Return the bytes of a row of tables of one schema."""
    chunks = (chunk for table in tables for column in table.columns for chunk in column.chunks)
    return sum(sum(_own(chunk)) for chunk in chunks) / max(sum(map(len, tables)), 1)


def _own(array: pa.Array) -> Iterator[int]:
    """Yield the size of each buffer of an array that has values, dictionaries left out."""
    first = 0 if array.null_count else 1
    yield from (buffer.size for buffer in array.buffers()[first:3] if buffer is not None)


def _parquet_bytes(table: pa.Table, folder: Path) -> int:
    path = folder / "audit.parquet"
    pq.write_table(table, path, compression="zstd")
    return path.stat().st_size
