"""A timed sample of the input: pieces spread over each source go through the real stages.

Segments are written into a temporary folder, measured, and removed.
"""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.corpus.sources import Corpus
from pipelines.inputs.split import Split
from pipelines.map.mapper import Job, Mapper, MapTask
from pipelines.readers.bounded import BoundedReader
from pipelines.readers.compressed import compression
from pipelines.readers.reading import format_of
from pipelines.segments.segment import Segment
from pipelines.steps.clock import Clock
from shards.tables import open_table

SECONDS = 24.0
"""How long all sources together are sampled, roughly."""

PIECES = 8
"""Places of a source that are sampled."""

PIECE_BYTES = 8 << 20
"""Most bytes of input, uncompressed, that are read at each of them."""

LEAST_SECONDS = 0.5
"""Shortest time for a piece."""

TABLES = ("documents", "holdout", "hashes", "audit")
"""Suffixes of the tables with a row for each document, text, record or pair."""


MOST_ROWS = 4096
"""Rows of a table that are kept, to make a segment of any size of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSample:
    """The sample of one source: its counts and bytes."""

    share: float
    """The part of the source's stored bytes that was read."""
    records: int
    """Rows of the audit: documents of all records, and records that could not be read."""
    documents: int
    """Documents left by the map, without duplicates within a piece."""
    tokens: int
    rejects: int
    texts: int
    """Distinct texts, for dedup."""
    signed: int
    """Signatures, for near-duplicates."""
    seconds: float
    """How long the pieces took, without the first one, which includes loading."""
    warm_share: float
    """The part of the source's stored bytes that these seconds were spent on."""
    audit_bytes: int
    """Size of the audit as Parquet."""
    kept_bytes: int
    """Size of rejects and kept texts."""
    example_bytes: int
    """Size of the largest segment's examples, whose number is bounded."""
    row_bytes: Mapping[str, float]
    """Size of a row of each of a segment's tables, by suffix."""
    tables: Mapping[str, pa.Table]
    """Some rows of each of a segment's tables, by suffix."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What was read at one place."""

    stored: float
    """Bytes as stored that were read."""
    seconds: float
    segments: tuple[Segment, ...]


def sample(
    corpora: Mapping[str, Corpus],
    splits: Mapping[str, Sequence[Split]],
    *,
    job: Job,
    seconds: float = SECONDS,
) -> dict[str, SourceSample]:
    """Return a sample of each source.

    Args:
        corpora: The corpus of each source.
        splits: Its splits, by source.
        job: The run.
        seconds: How long to sample, roughly.
    """
    with tempfile.TemporaryDirectory(prefix="corpusmill-plan-") as name:
        folder = Path(name)
        (folder / ".work" / "map").mkdir(parents=True)
        mapper = Mapper(replace(job, options=replace(job.options, output=folder)))
        return {
            source: _source(
                mapper, corpora[source], source_splits, folder=folder, seconds=seconds / len(splits)
            )
            for source, source_splits in splits.items()
        }


def _source(
    mapper: Mapper, corpus: Corpus, splits: Sequence[Split], *, folder: Path, seconds: float
) -> SourceSample:
    chosen = _chosen(splits)
    started, pieces = time.monotonic(), list[_Piece]()
    ends = {split.path: split.end for split in splits}
    for index, split in enumerate(chosen):
        left = seconds - (time.monotonic() - started)
        if index and left < 0:
            break
        until = time.monotonic() + max(LEAST_SECONDS, left / (len(chosen) - index))
        task = MapTask(name=f"{split.source}-{index}", split=split)
        pieces.append(_piece(mapper, corpus, task, until=until, end=ends[split.path]))
    stored = sum(split.file_bytes for split in {split.path: split for split in splits}.values())
    return _summed(pieces, folder / ".work" / "map", stored=stored)


def _chosen(splits: Sequence[Split]) -> list[Split]:
    """Return at most PIECES splits, spread evenly."""
    number = min(PIECES, len(splits))
    return [splits[(2 * index + 1) * len(splits) // (2 * number)] for index in range(number)]


def _piece(mapper: Mapper, corpus: Corpus, task: MapTask, *, until: float, end: int) -> _Piece:
    """Read at one place; `end` is that of the file's last split."""
    split, form = task.split, format_of(task.split.path, corpus.reading)
    packed = compression(split.path) is not None or form == "own"
    ratio = split.file_bytes / max(end, 1)  # of a table: bytes a row
    if not packed and form != "parquet":
        # From the middle of a long split: the beginning of a file may differ from the rest of it.
        first = max(split.start, (split.start + split.end) // 2 - PIECE_BYTES)
        split = replace(split, start=first if first > split.start + PIECE_BYTES else split.start)
    units = max(1, round(PIECE_BYTES / ratio))
    part = BoundedReader(corpus.reader(split), until=until, units=units, packed=packed)
    started = time.monotonic()
    segments, _ = mapper.segments(part, replace(task, split=split), Clock())
    return _Piece(
        stored=part.consumed(split) * ratio,
        seconds=time.monotonic() - started,
        segments=tuple(segments),
    )


def _summed(pieces: Sequence[_Piece], folder: Path, *, stored: int) -> SourceSample:
    """Return the sums over pieces whose segments lie in a folder."""
    warm = pieces[1:] or pieces
    segments = [segment for piece in pieces for segment in piece.segments]
    stems = [folder / segment.stem for segment in segments]
    tables = {
        suffix: [open_table(path) for path in _existing(stems, suffix)]
        for suffix in (*TABLES, "rejects", "texts", "examples")
    }
    audit = pa.concat_tables(tables["audit"]).unify_dictionaries() if segments else None
    return SourceSample(
        share=min(1.0, sum(piece.stored for piece in pieces) / stored),
        records=sum(len(table) for table in tables["audit"]),
        documents=sum(segment.documents for segment in segments),
        tokens=sum(segment.tokens for segment in segments),
        rejects=sum(segment.rejects for segment in segments),
        texts=sum(segment.sieved.texts for segment in segments),
        signed=sum(segment.sieved.signed for segment in segments),
        seconds=sum(piece.seconds for piece in warm),
        warm_share=min(1.0, sum(piece.stored for piece in warm) / stored),
        audit_bytes=_parquet_bytes(audit, folder) if audit else 0,
        kept_bytes=sum(table.nbytes for suffix in ("rejects", "texts") for table in tables[suffix]),
        example_bytes=max(
            (path.stat().st_size for path in _existing(stems, "examples")), default=0
        ),
        row_bytes={suffix: _row_bytes(tables[suffix]) for suffix in TABLES if tables[suffix]},
        tables={
            suffix: pa.concat_tables(tables[suffix]).slice(0, MOST_ROWS).unify_dictionaries()
            for suffix in (*TABLES, "examples")
            if tables[suffix]
        },
    )


def _existing(stems: Sequence[Path], suffix: str) -> Iterator[Path]:
    return (path for stem in stems if (path := stem.with_name(f"{stem.name}.{suffix}")).exists())


def _row_bytes(tables: Sequence[pa.Table]) -> float:
    """Return the bytes of a row of tables of one schema."""
    chunks = (chunk for table in tables for column in table.columns for chunk in column.chunks)
    return sum(sum(_buffer_bytes(chunk)) for chunk in chunks) / max(sum(map(len, tables)), 1)


def _buffer_bytes(array: pa.Array) -> Iterator[int]:
    """Yield the size of each buffer of an array, dictionaries left out."""
    first = 0 if array.null_count else 1
    yield from (buffer.size for buffer in array.buffers()[first:3] if buffer is not None)


def _parquet_bytes(table: pa.Table, folder: Path) -> int:
    path = folder / "audit.parquet"
    pq.write_table(table, path, compression="zstd")
    return path.stat().st_size
