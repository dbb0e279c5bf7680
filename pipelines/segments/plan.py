"""What the later tasks of a run work from, written once instead of sent with every task."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipelines.corpus.options import MOST_VALIDATION
from pipelines.dedup.sieve import Sieved
from pipelines.merge.merge import EVERYTHING, held_out
from pipelines.segments.rows import below
from pipelines.segments.segment import NUM_BINS, Segment, with_suffix
from pipelines.segments.sparse import side_by_side
from pipelines.segments.tables import column, open_table
from shards.records import from_json, to_json
from shards.storage.files import canonical, read_json, write_json
from shards.storage.remote import AnyPath

LEAST_VALIDATION = 32
_BINS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSegment:
    """A segment in the order of the documents' identities."""

    stem: str
    source: str
    rows: int
    """Of the audit."""
    documents: int
    tokens: int
    longest: int
    rejects: int
    held_bytes: int
    table_bytes: int
    """As in Segment."""
    sieved: Sieved
    """What dedup is to read of it."""
    folder: str = "map"
    """The folder of its files, in that of intermediate files; group.py makes others."""

    def path(self, work: AnyPath) -> AnyPath:
        """Return the stem of its files."""
        return work / self.folder / self.stem


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The segments of a run, numbered by their place in this list, and what is made of them."""

    generation: str
    """Name of the folder of shards."""
    fingerprint: str
    """Of the semantic options, models and inputs."""
    dtype: str
    """Type of a token."""
    texts: bool
    """Whether the segments hold the texts of what was dropped."""
    segments: tuple[PlannedSegment, ...]

    @property
    def name(self) -> str:
        """A hash of all that the plan says."""
        return hashlib.sha256(canonical(to_json(self))).hexdigest()[:24]

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources, sorted."""
        return tuple(sorted({segment.source for segment in self.segments}))

    def numbers(self, source: str) -> list[int]:
        """Return the numbers of a source's segments."""
        return [at for at, each in enumerate(self.segments) if each.source == source]

    def stems(self, work: AnyPath, source: str) -> dict[int, AnyPath]:
        """Return the stems of the files of a source's segments, by number."""
        return {at: self.segments[at].path(work) for at in self.numbers(source)}

    def paths(self, work: AnyPath, suffix: str) -> list[AnyPath]:
        """Return the paths of one file of every segment, by number."""
        return [with_suffix(each.path(work), suffix) for each in self.segments]

    def save(self, work: AnyPath) -> None:
        """Write the plan where `load_plan` finds it."""
        write_json(_path(work, self.name), to_json(self))


@lru_cache(maxsize=2)
def load_plan(work: AnyPath, name: str) -> Plan:
    """Return the plan of that name."""
    path = _path(work, name)
    return from_json(Plan, read_json(path), where=str(path))


def _path(work: AnyPath, name: str) -> AnyPath:
    return work / "plan" / f"{name}.json"


def planned(segments: Sequence[Segment], source: str) -> list[PlannedSegment]:
    """Return the segments of a split as a plan lists them."""
    return [
        PlannedSegment(
            stem=each.stem,
            source=source,
            rows=sum(tally.rows for tally in each.tallies),
            documents=each.documents,
            tokens=each.tokens,
            longest=each.longest,
            rejects=each.rejects,
            held_bytes=each.held_bytes,
            table_bytes=each.table_bytes,
            sieved=each.sieved,
        )
        for each in segments
    ]


def num_shards(plan: Plan, source: str, *, work: AnyPath, shard_tokens: int) -> int:
    """Return the least power of two of shards that keeps every shard within so many tokens.

    Counted in the segments' bins, before dedup across segments takes documents away. A shard that
    holds a single longer document is let be, and so are bins that are themselves too large.
    """
    chosen = [plan.segments[at] for at in plan.numbers(source)]
    if not sum(each.documents for each in chosen):
        return 0
    limit = max([shard_tokens, *(each.longest for each in chosen)])
    paths = [with_suffix(each.path(work), "bins") for each in chosen]
    before = np.zeros(NUM_BINS + 1, np.int64)
    for at in range(0, len(paths), _BINS_AT_ONCE):
        part = paths[at : at + _BINS_AT_ONCE]
        for bins in side_by_side(open_table, part, where=work):
            before += column(bins, "tokens")
    shards, fullest = 1, int(before[-1])
    while shards < NUM_BINS and fullest > limit:
        shards *= 2
        fullest = int(np.diff(before[:: NUM_BINS // shards]).max())
    # Finer than the bins: as if the fullest bin were even.
    return shards << ((fullest - 1) // limit).bit_length()


def holdout_threshold(
    plan: Plan,
    source: str,
    *,
    work: AnyPath,
    drops: Sequence[AnyPath],
    dropped: int,
    fraction: float,
) -> int:
    """Return the holdout hash below which a source's surviving documents are validation.

    It holds out the given fraction, at least LEAST_VALIDATION documents, at most MOST_VALIDATION of
    them.

    Args:
        plan: The plan.
        source: The source.
        work: The folder of intermediate files.
        drops: The drop files.
        dropped: How many of the source's documents they drop.
        fraction: The share to hold out; 0 for none.
    """
    if not fraction:
        return 0
    stems = plan.stems(work, source)
    survivors = sum(plan.segments[at].documents for at in stems) - dropped
    most = int(survivors * MOST_VALIDATION)
    if not most:
        return 0
    # Twice as far as the least number should reach, lest everything be read again.
    reach = max(below(fraction), min(2 * (LEAST_VALIDATION + 1) * 2**64 // survivors, 2**64 - 1))
    while True:
        found = held_out(stems, reach, EVERYTHING, drops=drops).values()
        held = np.sort(np.concatenate([np.zeros(0, np.uint64), *(each.hashes for each in found)]))
        if len(held) > min(LEAST_VALIDATION, most) or reach >= 2**64 - 1:
            break
        reach = min(reach * 2 + 1, 2**64 - 1)
    share = int(np.searchsorted(held, np.uint64(below(fraction))))
    wanted = min(max(share, LEAST_VALIDATION), most)
    if wanted == share:
        return below(fraction)
    return int(held[wanted]) if wanted < len(held) else reach
