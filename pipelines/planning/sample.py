"""A timed sample of the input: pieces spread over each source go through the real stages.

Segments are written into a temporary folder, measured, and removed.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.corpus.sources import Corpus
from pipelines.dedup.bands import EDGES
from pipelines.dedup.minhash import NUM_BANDS
from pipelines.map.mapper import Job, Mapper
from pipelines.planning.sizes import SourceSize, num_segments
from pipelines.read.bounded import BoundedReader
from pipelines.read.compressed import compression
from pipelines.read.input_format import NEVER_CUT
from pipelines.read.split import FileSplit
from pipelines.segments.segment import Segment
from pipelines.steps.step import Clock
from shards.tables import open_table

SECONDS = 24.0
"""How long all sources together are sampled, roughly."""

PIECES = 8
"""Places of a source that are sampled."""

PIECE_BYTES = 8 << 20
"""Most bytes of input, uncompressed, that are read at each of them."""

LEAST_SECONDS = 0.5
"""Shortest time for a piece."""

BANDS_INDEX_BYTES = NUM_BANDS * (EDGES + 1) * 4
"""Of the .bands of a segment, whatever its rows."""


Pack = tuple[FileSplit, ...]
"""What a task maps."""


@dataclass(frozen=True, slots=True)
class _Part:
    """What is read of a split."""

    split: FileSplit
    reader: BoundedReader
    ratio: float
    """Bytes as stored of a byte of the split; of a table, of a row."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What was read at one place."""

    stored: float
    """Bytes as stored that were read."""
    seconds: float
    segments: tuple[Segment, ...]


def sample(
    corpora: Mapping[str, Corpus],
    tasks: Mapping[str, Sequence[Pack]],
    *,
    job: Job,
    seconds: float = SECONDS,
) -> dict[str, SourceSize]:
    """Return how large each source becomes if all of it is like a sample of it.

    Args:
        corpora: The corpus of each source.
        tasks: What each task of a source maps, by source.
        job: The run.
        seconds: How long to sample, roughly.
    """
    with tempfile.TemporaryDirectory(prefix="corpusmill-plan-") as name:
        folder = Path(name)
        segments = folder / ".work" / "map"
        segments.mkdir(parents=True)
        mapper = Mapper(replace(job, options=replace(job.options, output=folder)))
        sizes: dict[str, SourceSize] = {}
        for source, cut in tasks.items():
            pieces = list(_pieces(mapper, corpora[source], cut, seconds=seconds / len(tasks)))
            sizes[source] = _source_size(pieces, cut, segments)
        return sizes


def _pieces(
    mapper: Mapper, corpus: Corpus, tasks: Sequence[Pack], *, seconds: float
) -> Iterator[_Piece]:
    """Yield what was read at places of a source, until its time is over."""
    started, chosen = time.monotonic(), _chosen(tasks)
    ends = {split.path: split.end for pack in tasks for split in pack}
    for index, pack in enumerate(chosen):
        left = seconds - (time.monotonic() - started)
        if index and left < 0:
            return
        until = time.monotonic() + max(LEAST_SECONDS, left / (len(chosen) - index))
        parts = [_part(corpus, split, until=until, end=ends[split.path]) for split in pack]
        yield _piece(mapper, parts, f"{pack[0].source}-{index}")


def _chosen(tasks: Sequence[Pack]) -> list[Pack]:
    """Return at most PIECES tasks, spread evenly."""
    number = min(PIECES, len(tasks))
    return [tasks[(2 * index + 1) * len(tasks) // (2 * number)] for index in range(number)]


def _part(corpus: Corpus, split: FileSplit, *, until: float, end: int) -> _Part:
    """Return what reads a part of a split; `end` is that of the file's last split."""
    packed = compression(split.path) is not None or split.form in NEVER_CUT
    ratio = split.file_bytes / max(end, 1)  # of a table: bytes a row
    if not packed and split.form != "parquet":
        # From the middle of a long split: the beginning of a file may differ from the rest of it.
        first = max(split.start, (split.start + split.end) // 2 - PIECE_BYTES)
        split = replace(split, start=first if first > split.start + PIECE_BYTES else split.start)
    units = max(1, round(PIECE_BYTES / ratio))
    reader = BoundedReader(corpus.reader(split), until=until, units=units, packed=packed)
    return _Part(split, reader, ratio)


def _piece(mapper: Mapper, parts: Sequence[_Part], name: str) -> _Piece:
    """Read at one place."""
    started = time.monotonic()
    readers = [(part.split, part.reader) for part in parts]
    written = mapper.segments(readers, name, clock=Clock())
    return _Piece(
        stored=sum(part.reader.consumed * part.ratio for part in parts),
        seconds=time.monotonic() - started,
        segments=tuple(written.segments),
    )


def _source_size(pieces: Sequence[_Piece], tasks: Sequence[Pack], folder: Path) -> SourceSize:
    """Return the size of a source from pieces whose segments lie in a folder."""
    splits = [split for pack in tasks for split in pack]
    files = {split.path: split.file_bytes for split in splits}
    ends = {split.path: split.end for split in splits}
    stored = sum(files.values())
    share = min(1.0, sum(piece.stored for piece in pieces) / stored)
    warm = pieces[1:] or pieces  # the first one includes loading
    warm_share = min(1.0, sum(piece.stored for piece in warm) / stored)
    times = 1 / max(share, 1e-9)
    segments = [segment for piece in pieces for segment in piece.segments]
    size: Counter[str] = Counter()
    for segment in segments:
        size.update({suffix: file.bytes for suffix, file in segment.files.items()})
    fixed = size["bins"] + size["examples"]  # whatever the rows of a segment
    fixed += BANDS_INDEX_BYTES * sum("bands" in segment.files for segment in segments)
    records = sum(tally.rows for segment in segments for tally in segment.tallies) * times
    tokens = sum(segment.tokens for segment in segments) * times
    shares = (
        sum((part.end - part.start) / max(ends[part.path], 1) * part.file_bytes for part in pack)
        / max(stored, 1)
        for pack in tasks
    )
    number = sum(num_segments(records * part, tokens * part) for part in shares)
    audit = _audit_bytes(folder, segments)
    return SourceSize(
        share=share,
        files=len(files),
        stored_bytes=stored,
        tasks=len(tasks),
        segments=number,
        records=records,
        documents=sum(segment.documents for segment in segments) * times,
        tokens=tokens,
        rejects=sum(segment.rejects for segment in segments) * times,
        texts=sum(segment.sieved.texts for segment in segments) * times,
        signed=sum(segment.sieved.signed for segment in segments) * times,
        map_seconds=sum(piece.seconds for piece in warm) / max(warm_share, 1e-9),
        segment_bytes=(size.total() - fixed) * times + fixed * number / max(len(segments), 1),
        token_bytes=size["tokens"] * times,
        document_bytes=size["documents"] * times,
        table_bytes=(audit + size["rejects"] + size["texts"]) * times,
    )


def _audit_bytes(folder: Path, segments: Sequence[Segment]) -> int:
    """Return the size of the segments' audit as Parquet."""
    if not segments:
        return 0
    path = folder / "audit.parquet"
    tables = pa.concat_tables([open_table(folder / f"{each.stem}.audit") for each in segments])
    pq.write_table(tables.unify_dictionaries(), path, compression="zstd")
    return path.stat().st_size
