"""The numbered list of all segments, written once instead of sent along with every item."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import Any

from pipelines.segments.segment import Segment, SieveCounts, with_suffix
from shards.errors import DamageError, UserError
from shards.manifest import Generation, TableEntry
from shards.paths import join_checked
from shards.range import EVERYTHING, Range
from shards.records import from_json, to_json
from shards.storage.files import canonical, read_json, write_json
from shards.storage.remote import AnyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSegment:
    """A segment as the plan lists it, in the order of the documents' identities."""

    stem: str
    source: str
    rows: int
    """Rows of its .audit table."""
    documents: int
    tokens: int
    longest: int
    rejects: int
    held_bytes: int
    table_bytes: int
    sieved: SieveCounts
    """From documents to here as in Segment."""
    folder: str = "map"
    """The folder of its files among the intermediate files: map, or ranges (merge/ranges.py)."""
    index: int = 0
    total: int = 1
    """Which of how many ranges of the order holds its rows."""

    @classmethod
    def of(cls, segment: Segment, source: str) -> "PlannedSegment":
        """Return a segment of a source as a plan lists it."""
        own = {"source", "rows", "folder", "index", "total"}
        same = [field.name for field in fields(cls) if field.name not in own]
        return cls(
            source=source,
            rows=sum(tally.rows for tally in segment.tallies),
            **{name: getattr(segment, name) for name in same},
        )

    def path(self, work: AnyPath) -> AnyPath:
        """Return the stem of its files."""
        return join_checked(work, self.folder, self.stem)

    @property
    def within(self) -> Range:
        """The range of the order that holds its rows."""
        return Range.of(self.index, self.total)


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """The files of an earlier generation that dedup reads: paths, relative to the output.

    The k-th of n tables holds the hashes, or the orders, of Range.of(k, n).
    """

    name: str
    """Of the generation."""
    exact: tuple[str, ...]
    bands: tuple[tuple[str, ...], ...] = ()
    """The tables of each band; none without --dedup minhash or without documents."""
    slots: tuple[str, ...] = ()
    has_erased: bool = False
    """Whether there are hashes of erased texts in its tables."""

    @classmethod
    def of(cls, generation: Generation, *, dedup: str) -> "Earlier":
        """Return the signature tables of a generation.

        Args:
            generation: One of the dataset's.
            dedup: none, exact or minhash, as --dedup says.

        Raises:
            UserError: Dedup of near-duplicates needs bands, which the generation lacks.
        """
        groups = _by_kind(generation.signatures)
        bands = tuple(paths for kind, paths in groups.items() if kind.startswith("band-"))
        slots = groups.get("slots", ())
        if dedup != "none" and not groups and any(table.rows for table in generation.audit):
            raise UserError(
                f"generation {generation.name} of this dataset has no signatures, by which "
                f"--dedup {dedup} would know its documents. Make the dataset again, once, with "
                "--overwrite and all of its input; after that it can be appended to."
            )
        if dedup == "minhash" and groups and not (bands and slots):
            raise UserError(
                f"generation {generation.name} of this dataset was made by an older corpusmill: it "
                "has no bands and slots in its signatures, with which --dedup minhash compares new "
                "documents. Make the dataset again, once, with --overwrite and all of its input; "
                "after that it can be appended to."
            )
        return cls(
            name=generation.name,
            exact=groups.get("exact", ()),
            bands=bands,
            slots=slots,
            has_erased=any("erased" in account for account in generation.accounting.values()),
        )


def _by_kind(tables: Iterable[TableEntry]) -> dict[str, tuple[str, ...]]:
    """Return the paths of signature tables by the part of their names before the number."""
    groups: dict[str, tuple[str, ...]] = {}
    for path in sorted(table.path for table in tables):
        kind = PurePosixPath(path).stem.rpartition("-")[0]
        groups[kind] = (*groups.get(kind, ()), path)
    return groups


@dataclass(frozen=True, kw_only=True)
class SegmentIndex:
    """The segments of a run, numbered by their place in this list, and what is made of them."""

    generation: str
    """Name of the folder of shards."""
    fingerprint: str
    """Hash of the semantic options, models and inputs."""
    dtype: str
    """Type of a token."""
    texts: bool
    """Whether the segments hold the texts of dropped documents."""
    segments: tuple[PlannedSegment, ...]
    earlier: tuple[Earlier, ...] = ()
    """The generations that the dataset has, oldest first: their documents rank before all here."""

    @cached_property
    def name(self) -> str:
        """A hash of everything in the plan, which takes a while: the name of every item has it."""
        return hashlib.sha256(canonical(to_json(self))).hexdigest()[:24]

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources, sorted."""
        return tuple(sorted({segment.source for segment in self.segments}))

    def numbers(self, source: str) -> list[int]:
        """Return the numbers of a source's segments."""
        return [n for n, segment in enumerate(self.segments) if segment.source == source]

    def stems(
        self, work: AnyPath, source: str, *, within: Range = EVERYTHING
    ) -> dict[int, AnyPath]:
        """Return the stems of the files of a source's segments in a range, by number."""
        return {
            number: self.segments[number].path(work)
            for number in self.numbers(source)
            if self.segments[number].within.overlaps(within)
        }

    def paths(self, work: AnyPath, suffix: str) -> list[AnyPath]:
        """Return the paths of one file of every segment, by number."""
        return [with_suffix(segment.path(work), suffix) for segment in self.segments]

    def save(self, work: AnyPath) -> None:
        """Write the plan where `load_index` finds it."""
        write_json(_path(work, self.name), to_json(self))


@lru_cache(maxsize=2)
def load_index(work: AnyPath, name: str) -> SegmentIndex:
    """Return the plan with a name.

    Raises:
        DamageError: There is no such plan.
    """
    path = _path(work, name)
    try:
        return from_json(SegmentIndex, read_json(path), where=str(path))
    except ValueError as error:
        raise DamageError(f"{error}: delete this file and run the command again") from error


def _path(work: AnyPath, name: str) -> AnyPath:
    return work / "plan" / f"{name}.json"


TASKS_VERSION = 8
"""Raised with every change to the code that changes what dedup, merge or ranges write."""


def item_name(*parts: Any) -> str:
    """Return the name of an item: a hash of everything that decides what it writes."""
    return hashlib.sha256(canonical([*parts, TASKS_VERSION])).hexdigest()[:24]
