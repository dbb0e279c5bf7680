"""How many requests a run makes of the storage behind a URL, and what they fetch. Arithmetic alone.

What a task asks for is counted a file at a time, as sparse.py fetches it: of a small file the
whole, of a larger table its end and runs of blocks. The constants are counts of what the code does;
tests/engines/test_requests.py holds them to a server's own count.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from pipelines.dedup.minhash import NUM_BANDS
from pipelines.engine.progress import PLAIN_SECONDS
from pipelines.merge.merge import ROWS_AT_ONCE
from pipelines.merge.union import TOKENS_AT_ONCE
from pipelines.planning.sizes import (
    BAND_ROW_BYTES,
    BINS_BYTES,
    TABLE_BYTES,
    Extent,
    SourceSize,
    grouped,
)
from pipelines.segments.segment import NUM_BINS
from pipelines.segments.sparse import BLOCK_ROWS, END_BYTES, GAP_BYTES, SMALL_BYTES
from shards.storage.lease import RENEWED_AFTER

PAGE_KEYS = 1000
"""Keys that a LIST tells, or a DELETE takes."""

PART_BYTES, SINGLE_BYTES = 50 << 20, 100 << 20
"""s3fs uploads a file up to the second in one request, a larger one in parts of the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests by kind, and the bytes of segments that they fetch."""

    put: float = 0.0
    get: float = 0.0
    head: float = 0.0
    list: float = 0.0
    delete: float = 0.0
    bytes: float = 0.0

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
BINS = WHOLE + Requests(bytes=BINS_BYTES)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """A table of blocks behind a URL, and what is fetched of it once its size is known."""

    rows: float
    row_bytes: float
    names: bool
    """Columns have dictionaries, which lie before the blocks."""

    @property
    def size(self) -> float:
        """Return the bytes of the file."""
        return self.rows * self.row_bytes + TABLE_BYTES

    def whole(self) -> Requests:
        """Return what reading all of it takes."""
        return WHOLE + Requests(bytes=self.size)

    def known(self, part: float) -> Requests:
        """Return what reading rows takes whose numbers are known, a part of all."""
        return self._fetched([(1.0, 1 + part * self._num)])

    def below(self, part: float) -> Requests:
        """Return what reading the first rows takes, a part of all, that are found by their key."""
        near = part * self._num + self._slack
        more = max(0.0, min(1.0, near - 2 * self._slack))
        return self._fetched([(1.0, min(near + 1, self._around)), (more, near)], first=True)

    def between(self, ranges: float) -> Requests:
        """Return what reading one of so many even ranges of the key takes, in the mean.

        The blocks around each bound, those of the upper one unless they are here already; and where
        others lie between them, all from the first to the last.
        """
        width, inner = self._num / ranges, 1 - 1 / ranges
        beyond = min(1.0, width) if self._around < self._num else 0.0
        apart = max(0.0, min(1.0, width - 2 * self._slack - 1))
        return self._fetched(
            [(inner, self._around), (1 - inner + inner * beyond, self._around), (apart, width + 1)]
        )

    @property
    def _num(self) -> int:
        return max(1, math.ceil(self.rows / BLOCK_ROWS))

    @property
    def _slack(self) -> float:
        """Return how far around a guess is fetched, in blocks (SparseTable.row_of)."""
        return (64 + 2 * math.sqrt(self.rows)) / BLOCK_ROWS

    @property
    def _around(self) -> float:
        """Return the blocks around a guess."""
        return min(self._num, 1 + 2 * self._slack)

    def _fetched(self, runs: Sequence[tuple[float, float]], *, first: bool = False) -> Requests:
        """Return what fetching runs of blocks takes, each with how often; and the file's end.

        Dictionaries come with the first block, or by a request of their own.
        """
        if self.size <= SMALL_BYTES:
            return Requests(get=1, bytes=self.size)
        names = self.names and not first
        number = 1 + sum(often for often, _ in runs)
        number += max(0.0, 1 - (1 + self._slack) / self._num) if names else 0
        blocks = sum(often * min(count, self._num) for often, count in runs)
        return Requests(get=number, bytes=END_BYTES + blocks * self.size / self._num)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    """The mean segment of a source."""

    source: SourceSize

    def table(self, suffix: str) -> Blocks:
        """Return one of its tables."""
        name = {"documents": "documents", "holdout": "documents", "hashes": "texts"}
        rows = getattr(self.source, name.get(suffix, "records")) / self.source.segments
        return Blocks(
            rows=rows,
            row_bytes=self.source.row_bytes.get(suffix, 0.0),
            names=suffix in ("documents", "audit"),
        )

    def token_bytes(self, token_bytes: int) -> float:
        """Return the bytes of its tokens."""
        return self.source.tokens * token_bytes / self.source.segments

    def tokens(self, token_bytes: int, *, shards: int) -> Requests:
        """Return what the shards fetch of its tokens."""
        size = self.token_bytes(token_bytes)
        return Requests(get=shards, bytes=size * (shards if size <= SMALL_BYTES else 1))

    def held_out(self, token_bytes: int, *, shards: int) -> Requests:
        """Return what reading the documents that are held out takes: their tokens are scattered."""
        tokens = self.token_bytes(token_bytes)
        documents = self.source.held / self.source.segments
        runs = min(documents, max(shards, tokens / GAP_BYTES))
        fetched = Requests(get=runs if tokens > SMALL_BYTES else shards)
        if not shards:
            return Requests()
        return (BINS + SIZE + self.table("documents").known(1 / shards)) * shards + fetched

    def uploads(self, token_bytes: int) -> Requests:
        """Return what writing its files takes."""
        source = self.source
        files: float = 6 + bool(source.texts) + (3 if source.signed else 0)
        files += min(1.0, source.rejects / source.segments)
        return Requests(put=files - 1) + uploaded(self.token_bytes(token_bytes))

    def united(self, token_bytes: int, *, members: float) -> Requests:
        """Return what reading it takes to make it one of the members of a group."""
        found = self.table("audit").whole() * 2 + self.table("documents").whole() * 3
        found += self.table("holdout").whole() + BINS + WHOLE + ABSENT  # examples, no rejects
        found += self.table("hashes").whole() if self.source.texts else Requests()
        size = self.token_bytes(token_bytes)
        pieces = max(1.0, members * size / token_bytes / TOKENS_AT_ONCE)
        return found + SIZE + Requests(get=pieces, bytes=size)


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
    """Return the requests of merging segments into groups: tokens are read in pieces."""
    found = TASK * later.segments
    for name, source in extent.sources.items():
        groups = later.sources[name].segments
        single = _Segment(source=source)
        members = source.segments / groups
        found += single.united(extent.token_bytes, members=members) * source.segments
        found += segments[name].uploads(later.token_bytes) * groups
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
        found += segment.table("hashes").between(extent.text_ranges) * extent.text_ranges * number
        found += SIZE * number * min(workers, extent.text_ranges)
        if extent.band_ranges:
            found += (Requests(get=4) * extent.band_ranges * NUM_BANDS + SIZE * workers) * number
            found += Requests(bytes=extent.sources[name].signed * NUM_BANDS * BAND_ROW_BYTES)
    return found + (SIZE + Requests(get=1)) * extent.dedup_tasks * extent.drop_ranges


def _merge(extent: Extent, segments: Mapping[str, _Segment], *, workers: int) -> Requests:
    found = Requests()
    for name, segment in segments.items():
        source, shards, held = extent.sources[name], extent.shards[name], extent.validation[name]
        number = source.segments
        found += BINS * number  # for the number of shards
        reached = segment.table("holdout").below(source.held / max(source.documents, 1))
        found += reached * number * (1 + held) + SIZE * number
        found += segment.held_out(extent.token_bytes, shards=held) * number
        found += (TASK + Requests(put=3)) * (shards + held)
        found += uploaded(source.tokens / shards * extent.token_bytes) * shards
        found += Requests(put=1 + min(1, source.rejects / shards)) * shards
        slices = BINS * shards + segment.tokens(extent.token_bytes, shards=shards)
        slices += segment.table("documents").known(max(1 / shards, 1 / NUM_BINS)) * shards
        parts = shards * max(1, -(-source.records // (shards * ROWS_AT_ONCE)))
        slices += segment.table("audit").between(parts) * parts
        slices += SIZE * 3 * min(workers, shards)
        found += slices * number
        drops = max(extent.drop_ranges, shards + held) + extent.drop_ranges
        found += (Requests(get=1) + SIZE) * drops
    return found
