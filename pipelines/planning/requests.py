"""How many requests a run makes of the storage behind a URL. Arithmetic alone.

What a task asks for is counted a file at a time, as sparse.py fetches it: of a small file the
whole, of a larger table both ends and the ranges of its columns. The constants are counts of what
the code does; tests/engines/test_requests.py holds them to a server's own count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from pipelines.dedup.minhash import NUM_BANDS
from pipelines.merge import ROWS_AT_ONCE
from pipelines.planning.sizes import TABLE_BYTES, Extent, Source, grouped
from pipelines.progress import PLAIN_SECONDS
from pipelines.sparse import GAP_BYTES, SMALL_BYTES
from shards.lease import RENEWED_AFTER

PAGE_KEYS = 1000
"""Keys that a LIST tells, or a DELETE takes."""

PART_BYTES, SINGLE_BYTES = 50 << 20, 100 << 20
"""s3fs uploads a file up to the second in one request, a larger one in parts of the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests by kind."""

    put: float = 0.0
    get: float = 0.0
    head: float = 0.0
    list: float = 0.0
    delete: float = 0.0

    def __add__(self, other: "Requests") -> "Requests":
        return Requests(
            **{
                each.name: getattr(self, each.name) + getattr(other, each.name)
                for each in fields(self)
            }
        )

    def __mul__(self, times: float) -> "Requests":
        return Requests(**{each.name: getattr(self, each.name) * times for each in fields(self)})

    @property
    def all(self) -> float:
        """Return their number."""
        return self.put + self.get + self.head + self.list + self.delete


WHOLE = Requests(head=1, get=1)
"""A file is read whole."""
SIZE = Requests(head=1)
"""A file that is there is asked for its size, or whether it is there."""
ABSENT = Requests(head=1, list=1)
"""The same of one that is not: s3fs looks whether it is a folder."""
TASK = ABSENT + Requests(put=1) + WHOLE * 2
"""A task's record: looked for by the worker, written, read for the progress, read."""
LOOKED_AT = WHOLE + SIZE + Requests(get=5)
"""Examples of a segment, for the report: the rows of the audit are scattered."""
START = Requests(put=3, get=4, head=6, list=8)
COMMIT = Requests(put=6, get=2, head=4, list=2)
"""A run besides its tasks: lock and listings, then manifest and report."""


def uploaded(size: float) -> Requests:
    """Return what writing a file of so many bytes takes."""
    return Requests(put=1 if size <= SINGLE_BYTES else 2 + -(-size // PART_BYTES))


def opened(size: float) -> Requests:
    """Return what it takes to learn the layout of a table of so many bytes."""
    return SIZE + Requests(get=1 if size <= SMALL_BYTES else 2)


def fetched(columns: Sequence[float], rows: float, *, part: float) -> float:
    """Return in how many ranges some of the rows of a table are fetched.

    Args:
        columns: Bytes a row of each buffer.
        rows: Rows of the table.
        part: The share of them that is fetched, a run of rows.
    """
    sizes = [rows * width for width in columns]
    if sum(sizes) + TABLE_BYTES <= SMALL_BYTES:
        return 0.0
    return 1.0 + sum(size * (1 - part) > GAP_BYTES for size in sizes[:-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    """The mean segment of a source."""

    source: Source

    def rows(self, suffix: str) -> float:
        """Return the rows of one of its tables."""
        name = {"documents": "documents", "holdout": "documents", "hashes": "texts"}
        return float(getattr(self.source, name.get(suffix, "records"))) / self.source.segments

    def size(self, suffix: str) -> float:
        """Return the bytes of one of its tables."""
        return self.rows(suffix) * self.source.row_bytes(suffix) + TABLE_BYTES

    def columns(self, suffix: str, *, part: float, only: slice = slice(None)) -> Requests:
        """Return what fetching a part of a table's rows takes; nothing where it came whole."""
        widths = self.source.columns.get(suffix, ())[only]
        if self.size(suffix) <= SMALL_BYTES:
            return Requests()
        return Requests(get=fetched(widths, self.rows(suffix), part=part) or 1)

    def bounds(self, suffix: str, *, ranges: int) -> Requests:
        """Return what finding the rows of one of some ranges takes."""
        if self.size(suffix) <= SMALL_BYTES:
            return Requests()
        return Requests(get=2 * (ranges - 1) / ranges)

    def slices(self, suffix: str, *, ranges: int, only: slice = slice(None)) -> Requests:
        """Return what reading each of some ranges of a table takes, sizes left out."""
        found = Requests(get=1 if self.size(suffix) <= SMALL_BYTES else 2)
        found += self.bounds(suffix, ranges=ranges)
        return (found + self.columns(suffix, part=1 / ranges, only=only)) * ranges

    def held_out(self, token_bytes: int, *, shards: int) -> Requests:
        """Return what reading the documents that are held out takes: their tokens are scattered."""
        tokens = self.source.tokens * token_bytes / self.source.segments
        documents = self.source.held / self.source.segments
        runs = min(documents, max(shards, tokens / GAP_BYTES))
        return WHOLE * shards + Requests(get=runs if tokens > SMALL_BYTES else shards)

    def uploads(self, token_bytes: int) -> Requests:
        """Return what writing its files takes."""
        source = self.source
        files: float = 6 + bool(source.texts) + (3 if source.signed else 0)
        files += min(1.0, source.rejects / source.segments)
        large = source.tokens / source.segments * token_bytes
        return Requests(put=files - 1) + uploaded(large)


def requests(extent: Extent, *, workers: int, seconds: float) -> dict[str, Requests]:
    """Return the requests of each phase of a run whose output is behind a URL.

    Args:
        extent: How large it is.
        workers: Processes that do the tasks; each learns the size of a file once.
        seconds: How long the run takes: it looks for finished tasks and renews its lease as long.
    """
    every = {name: _Segment(source=source) for name, source in extent.sources.items()}
    later = grouped(extent)
    segments = {name: _Segment(source=source) for name, source in later.sources.items()}
    found = {
        "map": _map(extent, every),
        **({"group": _group(extent, later, segments)} if later is not extent else {}),
        "dedup": _dedup(later, segments, workers=workers),
        "merge": _merge(later, segments, workers=workers),
    }
    files = 9 * extent.segments + extent.splits
    looks = Requests(list=max(1, files / PAGE_KEYS), put=1, get=1, head=1)
    rest = START + COMMIT + looks * (seconds / min(PLAIN_SECONDS, RENEWED_AFTER))
    rest += Requests(list=files / PAGE_KEYS, delete=1 + files / PAGE_KEYS)
    rest += LOOKED_AT * later.segments + WHOLE * workers
    return {**found, "the rest": rest}


def _map(extent: Extent, segments: Mapping[str, _Segment]) -> Requests:
    found = TASK * extent.splits
    for name, segment in segments.items():
        found += segment.uploads(extent.token_bytes) * extent.sources[name].segments
    return found


def _group(extent: Extent, later: Extent, segments: Mapping[str, _Segment]) -> Requests:
    """Return the requests of merging segments into groups: each file is read, in parts if large."""
    found = TASK * later.segments + (WHOLE * 6 + Requests(get=2)) * extent.segments
    for name, segment in segments.items():
        found += segment.uploads(later.token_bytes) * later.sources[name].segments
    return found


def _dedup(extent: Extent, segments: Mapping[str, _Segment], *, workers: int) -> Requests:
    """Return the requests of dedup and drops.

    Those are left out that look up what documents with a band in common have besides: no sample
    tells how many there are.
    """
    found = (TASK + Requests(put=1)) * (extent.dedup_tasks + extent.drop_ranges)
    found += Requests(put=1) * extent.dedup_tasks  # signatures, or links
    if not extent.dedup_tasks:
        return Requests()
    for name, segment in segments.items():
        number = extent.sources[name].segments
        found += segment.slices("hashes", ranges=extent.text_ranges) * number
        found += SIZE * number * min(workers, extent.text_ranges)
        if extent.band_ranges:
            found += (Requests(get=4) * extent.band_ranges * NUM_BANDS + SIZE * workers) * number
    return found + (SIZE + Requests(get=1)) * extent.dedup_tasks * extent.drop_ranges


def _merge(extent: Extent, segments: Mapping[str, _Segment], *, workers: int) -> Requests:
    found = Requests()
    for name, segment in segments.items():
        source, shards, held = extent.sources[name], extent.shards[name], extent.validation[name]
        number = source.segments
        found += WHOLE * number  # bins, for the number of shards
        found += segment.slices("holdout", ranges=1) * number * (1 + held) + SIZE * number
        found += segment.held_out(extent.token_bytes, shards=held) * number
        found += (TASK + Requests(put=3)) * (shards + held)
        found += uploaded(source.tokens / shards * extent.token_bytes) * shards
        found += Requests(put=1 + min(1, source.rejects / shards)) * shards
        slices = WHOLE * shards  # bins
        slices += segment.slices("documents", ranges=shards)
        parts = max(1, -(-source.records // (shards * ROWS_AT_ONCE)))
        slices += segment.slices("audit", ranges=int(shards * parts))
        slices += Requests(get=1) * shards  # tokens
        slices += SIZE * 3 * min(workers, shards)
        found += slices * number
        drops = max(extent.drop_ranges, shards + held) + extent.drop_ranges
        found += (Requests(get=1) + SIZE) * drops
    return found
