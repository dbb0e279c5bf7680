"""A segment: the documents and audit rows of some records, in files that later stages slice.

    .tokens      the tokens of the documents, concatenated, sorted by order hash
    .documents   one row per document, sorted by order hash
    .bins        how many documents and tokens precede each of 4,096 equal bins of the order hash
    .holdout     the documents' holdout hashes, sorted, with their rows and orders
    .hashes      text hashes, and for near-duplicates .slots and .bands (segment_dedup.py)
    .audit       one row for every record read, sorted by order
    .rejects     the records that could not be read: place, reason and first bytes
    .examples    for each reason the documents with the smallest orders, for the report
    .texts       prompt and text of each row of .audit (--keep-dropped)

All files except .tokens, .slots and .bands are Arrow IPC files, which are read by memory-mapping.
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
    """The row counts of the files that dedup reads."""

    texts: int = 0
    """The number of rows of .hashes: distinct texts."""
    signed: int = 0
    """The number of rows of .slots: signed documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A finished segment; its files have the name `stem` and the suffixes above."""

    stem: str
    documents: int
    tokens: int
    longest: int
    """The number of tokens of the longest document."""
    rejects: int
    fanned_out: int
    """The number of documents beyond the first one of their record."""
    tallies: tuple[Tally, ...]
    files: Mapping[str, FileEntry]
    """The files by suffix; a later run checks them before it uses the segment."""
    dedup_counts: DedupCounts = field(default_factory=DedupCounts)
    shortest: int = 0
    """The number of tokens of the shortest document."""
    unknown: Mapping[str, UnknownTokens] = field(default_factory=dict)
    """The numbers of unknown tokens by language, including those of dropped duplicates."""
    empty: Mapping[str, int] = field(default_factory=dict)
    """For each column of strings that lacks values, the number of documents, including dropped
    duplicates, without one."""

    def __post_init__(self) -> None:
        check_stem(self.stem, self.files)

    @property
    def held_bytes(self) -> int:
        """The size of .texts and .rejects together, in bytes."""
        return sum(self.files[name].bytes for name in ("texts", "rejects") if name in self.files)

    @property
    def table_bytes(self) -> int:
        """The size of .documents or .audit in bytes, whichever is larger."""
        return max(self.files[name].bytes for name in ("documents", "audit"))


def with_suffix(stem: AnyPath, suffix: str) -> AnyPath:
    """Return the path of one of a segment's files."""
    return stem.with_name(f"{stem.name}.{suffix}")
