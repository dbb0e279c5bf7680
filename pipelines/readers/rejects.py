"""Rejected records, read again: which records of its inputs a replay reads, and their reader.

The places of a file's rejects are in a table of their own, sorted by place, which the driver writes
and the workers map:

    position, length    of the record in the uncompressed file, or row number and 1
    ordinal             of the document within the record; -1: all documents
    reason              why it was rejected
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.inputs.split import Link, Split, open_split
from pipelines.readers.places import read_places
from pipelines.readers.reading import Reading, format_of, stored_crc32c
from pipelines.readers.record import MAX_RECORD_BYTES, Damage, Reason, Record, strings_in
from pipelines.segments.rows import Verdict
from shards.errors import UserError
from shards.manifest import Manifest
from shards.storage.files import whole_bytes
from shards.storage.remote import AnyPath
from shards.tables import column, open_table, write_table

PLACES = pa.schema(
    [
        ("position", pa.int64()),
        ("length", pa.int64()),
        ("ordinal", pa.int32()),
        ("reason", pa.large_string()),
    ]
)

WHOLE = -1
"""The ordinal that stands for all documents of a record."""

PER_DOCUMENT = "tokenizer-failed"
"""The reason that rejects a document and not its siblings; all others reject the record."""


@dataclass(frozen=True, kw_only=True)
class Rejects:
    """The rejected records of a dataset, and what is done about them: a ReaderFactory."""

    folder: AnyPath
    """Where the tables lie."""
    dataset: str
    """Identity of the dataset that rejected them."""
    reasons: tuple[str, ...]
    """Those taken; none: all."""
    bad_utf8: str = "reject"
    """reject, or replace: invalid bytes and lone surrogates become U+FFFD."""
    nul: str = "reject"
    """reject, or remove: NUL characters are taken out."""
    max_record_bytes: int = MAX_RECORD_BYTES
    """A longer record is damage."""

    def facts(self) -> dict[str, Any]:
        """Return what decides bytes, by the name of its flag, JSON-able."""
        return {
            "replay": self.dataset,
            "reasons": sorted(self.reasons),
            "bad_utf8": self.bad_utf8,
            "nul": self.nul,
            "max_record_bytes": self.max_record_bytes,
        }

    def write(
        self, places: pa.Table, chain: Sequence[Split], *, crc32c: Sequence[int] | None
    ) -> None:
        """Write the places of one file.

        Args:
            places: PLACES, sorted.
            chain: The splits of the file.
            crc32c: Checksum of each split; None where they are not known.
        """
        starts = [split.start for split in chain]
        metadata = {b"starts": json.dumps(starts), b"crc32c": json.dumps(crc32c and [*crc32c])}
        write_table(self._path(chain[0]), places.replace_schema_metadata(metadata))

    def reading(self, reading: Reading, /) -> Reading:
        """Return how files are read: with the bound on a record's length that the replay has."""
        return replace(reading, max_record_bytes=self.max_record_bytes)

    def reader(self, split: Split, reading: Reading) -> "RejectReader":
        """Return a reader of the rejected records of a split."""
        return RejectReader(split, reading, self)

    def selected(self, verdict: Verdict, split: Split) -> Verdict:
        """Return the documents that were rejected, without siblings that were not."""
        positions = verdict.batch["position"].to_numpy()
        chosen = pa.array(self.of(split).among(positions, verdict.batch["ordinal"].to_numpy()))
        return Verdict(verdict.batch.filter(chosen), verdict.reasons.filter(chosen))

    def of(self, split: Split) -> "SplitRejects":
        """Return those of a split."""
        table = open_table(self._path(split))
        metadata = {name: json.loads(text) for name, text in table.schema.metadata.items()}
        index = metadata[b"starts"].index(split.start)
        following: Sequence[int] = metadata[b"starts"][index + 1 : index + 2]
        # What lies at the end of a file, or was unpacked beyond its size, is the last split's.
        edges = [split.start, *following]
        rows = np.searchsorted(column(table, "position"), edges)
        return SplitRejects(
            table=table.slice(int(rows[0]), int(rows[1] - rows[0]) if following else None),
            crc32c=metadata[b"crc32c"][index] if metadata[b"crc32c"] else None,
        )

    def _path(self, split: Split) -> AnyPath:
        name = hashlib.sha256(f"{split.source}\0{split.relative}".encode()).hexdigest()
        return self.folder / f"{name[:24]}.arrow"


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitRejects:
    """The rejects of one split."""

    table: pa.Table
    """PLACES."""
    crc32c: int | None
    """Checksum of the split's bytes as stored, where it is known."""

    def reasons(self) -> Mapping[tuple[int, int], str]:
        """Return why each place was rejected."""
        names = ("position", "length", "reason")
        positions, lengths, reasons = (self.table[name].to_pylist() for name in names)
        return dict(zip(zip(positions, lengths, strict=True), reasons, strict=True))

    def among(
        self, positions: npt.NDArray[np.int64], ordinals: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.bool_]:
        """Return which documents were rejected; siblings of theirs were not."""
        position, ordinal = column(self.table, "position"), column(self.table, "ordinal")
        rejected: npt.NDArray[np.bool_] = np.isin(positions, position[ordinal == WHOLE])
        is_single = ordinal != WHOLE
        single = {*zip(position[is_single].tolist(), ordinal[is_single].tolist(), strict=True)}
        if single:
            pairs = zip(positions.tolist(), ordinals.tolist(), strict=True)
            rejected |= np.fromiter((pair in single for pair in pairs), bool, len(rejected))
        return rejected


_OF_THE_FILE: Mapping[str, Reason] = {
    "truncated": "truncated",
    "unterminated-array": "unterminated-array",
    "trailing-bytes": "trailing-bytes",
    "bad-archive": "bad-archive",
    "bad-row-group": "bad-row-group",
}
"""Reasons that do not follow from the bytes at a place."""

_CUT: Mapping[str, Reason] = {name: _OF_THE_FILE[name] for name in ("truncated", "bad-archive")}


class RejectReader:
    """Iterates over the rejects of one split; iterated to its end, it knows `link` and `crc32c`."""

    def __init__(self, split: Split, reading: Reading, rejects: Rejects) -> None:
        """Make a reader.

        Args:
            split: The range whose rejects to read.
            reading: How the file is read.
            rejects: What was rejected, and what is done about it.
        """
        self.link: Link | None = None
        """The whole range: the places of what was read are known."""
        self.crc32c: int | None = None
        """Checksum of the split's bytes as stored."""
        self.done = 0
        """How much of the split's range the records read so far stand for."""
        self._split = split
        self._reading = reading
        self._rejects = rejects

    def __iter__(self) -> Iterator[Record | Damage]:
        """Yield what is at the places, in the order of the file.

        Raises:
            UserError: The file cannot be read, or changed since it was cut into splits.
        """
        split = self._split
        open_split(split).close()
        rejects = self._rejects.of(split)
        reasons = rejects.reasons()
        mend = self._rejects.bad_utf8 == "replace"
        items = read_places(split.path, reasons, self._reading, mend=mend) if reasons else ()
        for count, item in enumerate(items, 1):
            yield self._item(item, reasons.get((item.offset, item.length), ""))
            self.done = (split.end - split.start) * count // len(reasons)
        open_split(split).close()  # once more: it may have been written meanwhile
        self.link = Link(end=split.end, first=split.start, next=split.end)
        known = rejects.crc32c
        self.crc32c = stored_crc32c(split, self._reading) if known is None else known

    def _item(self, item: Record | Damage, before: str) -> Record | Damage:
        if isinstance(item, Damage):
            return item._replace(reason=_OF_THE_FILE.get(before, item.reason))
        if before in _CUT and format_of(self._split.path, self._reading) == "lines":
            # Half a line of text reads as well as a whole one.
            return Damage(item.offset, item.length, _CUT[before], item.head)
        if self._rejects.nul == "remove":
            _remove_nul(item.value)
        return item


def _remove_nul(value: Any) -> None:
    """Take the NUL characters out of all strings in a value, which may be nested deeply."""
    for container, key, text in strings_in(value):
        container[key] = text.replace("\0", "")


def rejected_places(
    directory: AnyPath, manifest: Manifest, *, reasons: Sequence[str]
) -> dict[tuple[str, str], pa.Table]:
    """Return what a dataset rejected, by source and path, as rows of PLACES sorted by place.

    Args:
        directory: The dataset.
        manifest: Its manifest.
        reasons: Only those rejected for these; none: all.

    Raises:
        UserError: There are none; the message says which reasons there are.
        DamageError: A table is missing or damaged.
    """
    by_source: dict[str, list[pa.Table]] = {}
    known: set[str] = set()
    for generation in manifest.generations:
        for entry in generation.rejects:
            columns = ["path", "position", "length", "reason"]
            content = whole_bytes(directory / entry.path, entry)
            rows = pq.read_table(pa.BufferReader(content), columns=columns)
            known |= {*rows["reason"].unique().to_pylist()}
            ordinal = pa.repeat(pa.scalar(WHOLE, pa.int32()), rows.num_rows)
            rows = rows.append_column("ordinal", ordinal)
            rows = rows.filter(pc.not_equal(rows["reason"], PER_DOCUMENT))
            by_source.setdefault(entry.source, []).append(rows)
        if PER_DOCUMENT in known and PER_DOCUMENT in (reasons or known):
            for entry in generation.audit:
                rows = _documents(whole_bytes(directory / entry.path, entry))
                by_source.setdefault(entry.source, []).append(rows)
    places: dict[tuple[str, str], pa.Table] = {}
    for source, tables in sorted(by_source.items()):
        rows = pa.concat_tables(tables)
        if reasons:
            rows = rows.filter(pc.is_in(rows["reason"], pa.array([*reasons], pa.large_string())))
        places |= {(source, path): table for path, table in _by_path(rows)}
    if not places:
        raise UserError(
            f"{directory} has nothing to replay: it rejected "
            + (f"records as {', '.join(sorted(known))} alone" if known else "no record")
        )
    return places


def _documents(audit: npt.NDArray[np.uint8]) -> pa.Table:
    """Return the places of documents that were rejected while their siblings were not."""
    columns = ["path", "position", "length", "reason", "ordinal"]
    wanted = pc.field("reason") == PER_DOCUMENT
    return pq.read_table(pa.BufferReader(audit), columns=columns, filters=wanted)


def _by_path(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    names = ("path", "position", "length", "ordinal")
    rows = rows.sort_by([(name, "ascending") for name in names]).combine_chunks()
    counts = rows.group_by("path", use_threads=False).aggregate([("path", "count")])
    start = 0
    for path, num in zip(
        *(counts[name].to_pylist() for name in ("path", "path_count")), strict=True
    ):
        yield path, rows.slice(start, num).select(PLACES.names).cast(PLACES)
        start += num
