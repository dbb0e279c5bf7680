"""What the later tasks of a run work from, written once instead of sent with every task."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pipelines.segments.segment import Segment, Sieved, with_suffix
from shards.records import from_json, to_json
from shards.storage.files import canonical, read_json, write_json
from shards.storage.remote import AnyPath


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


TASKS_VERSION = 4
"""Raised by every change of this package that changes what these tasks write."""


def task_name(*parts: Any) -> str:
    """Return the name of a task: a hash of all that decides what it writes."""
    return hashlib.sha256(canonical([*parts, TASKS_VERSION])).hexdigest()[:24]
