"""The numbered list of all segments, which is in one file instead of being sent with every item."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import PurePosixPath
from typing import Any

from pipelines.segments.segment import DedupCounts, Segment, with_suffix
from shards.errors import DamageError, UserError
from shards.manifest import Generation, TableEntry
from shards.paths import join_checked
from shards.range import FULL_RANGE, Range
from shards.records import from_json, to_json
from shards.storage.files import canonical_json, read_json, write_json
from shards.storage.remote import AnyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEntry:
    """A segment in the index; segments are in the order of the documents' identities."""

    stem: str
    source: str
    rows: int
    """The number of rows of the .audit table."""
    documents: int
    tokens: int
    longest: int
    rejects: int
    held_bytes: int
    table_bytes: int
    dedup_counts: DedupCounts
    """The fields from `documents` to here are those of Segment."""
    folder: str = "map"
    """The folder of its files in .work: map, or ranges (merge/ranges.py)."""
    index: int = 0
    total: int = 1
    """The segment holds range `index` of `total` ranges of the order."""

    @classmethod
    def of(cls, segment: Segment, source: str) -> "SegmentEntry":
        """Return the entry of a segment of a source."""
        own = {"source", "rows", "folder", "index", "total"}
        same = [field.name for field in fields(cls) if field.name not in own]
        return cls(
            source=source,
            rows=sum(tally.rows for tally in segment.tallies),
            **{name: getattr(segment, name) for name in same},
        )

    def path(self, work: AnyPath) -> AnyPath:
        """Return the stem of the segment's files."""
        return join_checked(work, self.folder, self.stem)

    @property
    def within(self) -> Range:
        """The range of the order that the rows are in."""
        return Range.of(self.index, self.total)


@dataclass(frozen=True, kw_only=True)
class PreviousGeneration:
    """The paths of an earlier generation's signature tables, relative to the output.

    Table k of n holds the hashes, or the orders, of Range.of(k, n).
    """

    name: str
    exact: tuple[str, ...]
    bands: tuple[tuple[str, ...], ...] = ()
    """The tables of each band; empty if --dedup is not minhash or there are no documents."""
    slots: tuple[str, ...] = ()
    has_erased: bool = False
    """Whether the tables have hashes of erased texts."""

    @classmethod
    def of(cls, generation: Generation, *, dedup: str) -> "PreviousGeneration":
        """Return the signature tables of a generation.

        Args:
            generation: A generation of the dataset.
            dedup: The value of --dedup: none, exact or minhash.

        Raises:
            UserError: Dedup of near-duplicates needs bands, which the generation lacks.
        """
        groups = _by_kind(generation.signatures)
        bands = tuple(paths for kind, paths in groups.items() if kind.startswith("band-"))
        slots = groups.get("slots", ())
        if dedup != "none" and not groups and any(table.rows for table in generation.audit):
            raise UserError(
                f"generation {generation.name} of this dataset has no signatures, which --dedup "
                f"{dedup} needs to recognize its documents. Build the dataset again with "
                "--overwrite and all of its input; after that you can append to it."
            )
        if dedup == "minhash" and groups and not (bands and slots):
            raise UserError(
                f"generation {generation.name} of this dataset was made by an older corpusmill: "
                "its signatures lack the bands and slots that --dedup minhash compares new "
                "documents with. Build the dataset again with --overwrite and all of its input; "
                "after that you can append to it."
            )
        return cls(
            name=generation.name,
            exact=groups.get("exact", ()),
            bands=bands,
            slots=slots,
            has_erased=any("erased" in account for account in generation.accounting.values()),
        )


def _by_kind(tables: Iterable[TableEntry]) -> dict[str, tuple[str, ...]]:
    """Return the paths of signature tables by kind: the part of the name before the number."""
    groups: dict[str, tuple[str, ...]] = {}
    for path in sorted(table.path for table in tables):
        kind = PurePosixPath(path).stem.rpartition("-")[0]
        groups[kind] = (*groups.get(kind, ()), path)
    return groups


@dataclass(frozen=True, kw_only=True)
class SegmentIndex:
    """The segments of a run, numbered by their place in this list, and the generation to make."""

    generation: str
    """The name of the generation, which is the folder of its shards."""
    fingerprint: str
    """The hash of the semantic options, models and inputs."""
    dtype: str
    """The type of a token."""
    texts: bool
    """Whether the segments hold the texts of dropped documents."""
    segments: tuple[SegmentEntry, ...]
    previous: tuple[PreviousGeneration, ...] = ()
    """The earlier generations of the dataset, oldest first; new documents follow theirs."""

    @cached_property
    def name(self) -> str:
        """The hash of the whole index, which is part of every item's name; computing it is slow."""
        return hashlib.sha256(canonical_json(to_json(self))).hexdigest()[:24]

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources, sorted."""
        return tuple(sorted({segment.source for segment in self.segments}))

    def numbers(self, source: str) -> list[int]:
        """Return the numbers of a source's segments."""
        return [n for n, segment in enumerate(self.segments) if segment.source == source]

    def stems(
        self, work: AnyPath, source: str, *, within: Range = FULL_RANGE
    ) -> dict[int, AnyPath]:
        """Return the stems of a source's segments that overlap a range, by number."""
        return {
            number: self.segments[number].path(work)
            for number in self.numbers(source)
            if self.segments[number].within.overlaps(within)
        }

    def paths(self, work: AnyPath, suffix: str) -> list[AnyPath]:
        """Return the path of each segment's file with this suffix, in the order of the segments."""
        return [with_suffix(segment.path(work), suffix) for segment in self.segments]

    def save(self, work: AnyPath) -> None:
        """Write the index to the file that `load_index` reads."""
        write_json(_path(work, self.name), to_json(self))


@lru_cache(maxsize=2)
def load_index(work: AnyPath, name: str) -> SegmentIndex:
    """Return the index that was saved under a name.

    Raises:
        DamageError: The file is missing or damaged.
    """
    path = _path(work, name)
    try:
        return from_json(SegmentIndex, read_json(path), where=str(path))
    except ValueError as error:
        raise DamageError(f"{error}: delete this file and run the command again") from error


def _path(work: AnyPath, name: str) -> AnyPath:
    return work / "plan" / f"{name}.json"


DEDUP_MERGE_VERSION = 8
"""A number that must be raised whenever the output of dedup, ranges or merge changes."""


def item_name(*parts: Any) -> str:
    """Return the name of an item: a hash of everything that determines its output."""
    return hashlib.sha256(canonical_json([*parts, DEDUP_MERGE_VERSION])).hexdigest()[:24]
