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
from pipelines.filters.step import Clock
from pipelines.inputs.split import Split
from pipelines.map.mapper import Job, Mapper, MapTask
from pipelines.planning.sizes import SourceSize, num_segments
from pipelines.readers.bounded import BoundedReader
from pipelines.readers.compressed import compression
from pipelines.readers.reading import format_of
from pipelines.segments.segment import Segment
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
    token_bytes: int,
    seconds: float = SECONDS,
) -> dict[str, SourceSize]:
    """Return how large each source becomes if all of it is like a sample of it.

    Args:
        corpora: The corpus of each source.
        splits: Its splits, by source.
        job: The run.
        token_bytes: Bytes of a token: 2 or 4.
        seconds: How long to sample, roughly.
    """
    with tempfile.TemporaryDirectory(prefix="corpusmill-plan-") as name:
        folder = Path(name)
        segments = folder / ".work" / "map"
        segments.mkdir(parents=True)
        mapper = Mapper(replace(job, options=replace(job.options, output=folder)))
        sizes: dict[str, SourceSize] = {}
        for source, cut in splits.items():
            pieces = list(_pieces(mapper, corpora[source], cut, seconds=seconds / len(splits)))
            sizes[source] = _source_size(pieces, cut, segments, token_bytes=token_bytes)
        return sizes


def _pieces(
    mapper: Mapper, corpus: Corpus, splits: Sequence[Split], *, seconds: float
) -> Iterator[_Piece]:
    """Yield what was read at places of a source, until its time is over."""
    started, chosen = time.monotonic(), _chosen(splits)
    ends = {split.path: split.end for split in splits}
    for index, split in enumerate(chosen):
        left = seconds - (time.monotonic() - started)
        if index and left < 0:
            return
        until = time.monotonic() + max(LEAST_SECONDS, left / (len(chosen) - index))
        task = MapTask(name=f"{split.source}-{index}", split=split)
        yield _piece(mapper, corpus, task, until=until, end=ends[split.path])


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


def _source_size(
    pieces: Sequence[_Piece], splits: Sequence[Split], folder: Path, *, token_bytes: int
) -> SourceSize:
    """Return the size of a source from pieces whose segments lie in a folder."""
    sizes = {split.path: split.file_bytes for split in splits}
    ends = {split.path: split.end for split in splits}
    stored = sum(sizes.values())
    share = min(1.0, sum(piece.stored for piece in pieces) / stored)
    warm = pieces[1:] or pieces  # the first one includes loading
    warm_share = min(1.0, sum(piece.stored for piece in warm) / stored)
    times = 1 / max(share, 1e-9)
    segments = [segment for piece in pieces for segment in piece.segments]
    tables = {
        suffix: [open_table(path) for path in _existing(folder, segments, suffix)]
        for suffix in (*TABLES, "rejects", "texts")
    }
    records = sum(map(len, tables["audit"])) * times
    tokens = sum(segment.tokens for segment in segments) * times
    shares = (
        (split.end - split.start) / max(ends[split.path], 1) * split.file_bytes / max(stored, 1)
        for split in splits
    )
    kept = sum(table.nbytes for suffix in ("rejects", "texts") for table in tables[suffix])
    examples = _existing(folder, segments, "examples")
    return SourceSize(
        share=share,
        files=len(sizes),
        stored_bytes=stored,
        splits=len(splits),
        segments=sum(num_segments(records * part, tokens * part) for part in shares),
        records=records,
        documents=sum(segment.documents for segment in segments) * times,
        tokens=tokens,
        token_bytes=token_bytes,
        rejects=sum(segment.rejects for segment in segments) * times,
        texts=sum(segment.sieved.texts for segment in segments) * times,
        signed=sum(segment.sieved.signed for segment in segments) * times,
        map_seconds=sum(piece.seconds for piece in warm) / max(warm_share, 1e-9),
        audit_bytes=_parquet_bytes(tables["audit"], folder) * times,
        kept_bytes=kept * times,
        example_bytes=max((path.stat().st_size for path in examples), default=0),
        row_bytes={suffix: _row_bytes(tables[suffix]) for suffix in TABLES},
    )


def _existing(folder: Path, segments: Sequence[Segment], suffix: str) -> Iterator[Path]:
    return filter(Path.exists, (folder / f"{segment.stem}.{suffix}" for segment in segments))


def _row_bytes(tables: Sequence[pa.Table]) -> float:
    """Return the bytes of a row of tables of one schema."""
    chunks = (chunk for table in tables for column in table.columns for chunk in column.chunks)
    return sum(sum(_buffer_bytes(chunk)) for chunk in chunks) / max(sum(map(len, tables)), 1)


def _buffer_bytes(array: pa.Array) -> Iterator[int]:
    """Yield the size of each buffer of an array, dictionaries left out."""
    first = 0 if array.null_count else 1
    yield from (buffer.size for buffer in array.buffers()[first:3] if buffer is not None)


def _parquet_bytes(tables: Sequence[pa.Table], folder: Path) -> int:
    if not tables:
        return 0
    path = folder / "audit.parquet"
    pq.write_table(pa.concat_tables(tables).unify_dictionaries(), path, compression="zstd")
    return path.stat().st_size
