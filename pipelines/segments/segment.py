"""A segment: what a run of records became, in files that later stages read by slices.

    .tokens      the documents' tokens back to back, in the order of their order hash
    .documents   one row per document, in the same order
    .bins        documents and tokens before each of 4,096 even bins of the order hash
    .holdout     the documents' holdout hashes, sorted, with their rows and orders
    .hashes      text hashes, and for near-duplicates .slots and .bands (segment_dedup.py)
    .audit       one row for every record read, sorted by order
    .rejects     the records that could not be read: place, reason, first bytes
    .examples    for each reason the documents of smallest order, for the report
    .texts       prompt and text of each row of .audit (--keep-dropped)

All but .tokens, .slots and .bands are Arrow IPC files, mapped when read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from pipelines.segments.audit import Tally
from pipelines.segments.unknown import UnknownTokens
from shards.paths import check_stem
from shards.storage.files import FileEntry
from shards.storage.remote import AnyPath

NUM_BINS = 4096

REJECT_SCHEMA = pa.schema(
    [
        ("order", pa.uint64()),
        ("path", pa.large_string()),
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("reason", pa.large_string()),
        ("raw", pa.large_binary()),
    ]
)
"""A record that could not be read: its place, the reason, and at most its first 64 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupCounts:
    """The files of a segment that dedup reads."""

    texts: int = 0
    """Distinct texts: rows of .hashes."""
    signed: int = 0
    """Rows of .slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A finished segment; its files have the name `stem` and the suffixes above."""

    stem: str
    documents: int
    tokens: int
    longest: int
    """Tokens of its longest document."""
    rejects: int
    fanned_out: int
    """Documents beyond the first of their record."""
    tallies: tuple[Tally, ...]
    files: Mapping[str, FileEntry]
    """By suffix; a later run checks them before it uses the segment."""
    dedup_counts: DedupCounts = field(default_factory=DedupCounts)
    shortest: int = 0
    """Tokens of its shortest document."""
    unknown: Mapping[str, UnknownTokens] = field(default_factory=dict)
    """By language, of its documents and of equal ones that were not handed on."""
    empty: Mapping[str, int] = field(default_factory=dict)
    """By column of text, how many of these documents have no value there, if any."""

    def __post_init__(self) -> None:
        check_stem(self.stem, self.files)

    @property
    def held_bytes(self) -> int:
        """Size of .texts and .rejects together."""
        return sum(self.files[name].bytes for name in ("texts", "rejects") if name in self.files)

    @property
    def table_bytes(self) -> int:
        """Size of the larger of .documents and .audit."""
        return max(self.files[name].bytes for name in ("documents", "audit"))


def with_suffix(stem: AnyPath, suffix: str) -> AnyPath:
    """Return the path of one of a segment's files."""
    return stem.with_name(f"{stem.name}.{suffix}")
