"""Compaction: merges all generations into one, without the removed documents.

    generations ── ranges of the order ──> shards, validation, audit, rejects, dropped
                ── ranges of the hash ───> signatures

A part is one range of one of these: the rows of all generations in that range, sorted. Writing a
part takes the memory of one shard and ends with a record, so that a rerun continues after the
finished parts. The manifest is written last; until then the dataset does not change. The files of
the old generations stay, because readers may have them open; `prune` deletes them later.

Removed documents are left out of every table (erasure.py), so that the result has no removals.
A compacted dataset starts a new lineage: its older manifest numbers can no longer be read.
"""

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from shards.commands.progress import track, track_files
from shards.commands.table import called
from shards.errors import DamageError, UserError
from shards.maintenance.erasure import Erasure
from shards.maintenance.prune import remove_work
from shards.manifest import (
    TRAIN,
    VALIDATION,
    WORK,
    Generation,
    ShardEntry,
    SourceEntry,
    TableEntry,
    write_manifest,
)
from shards.merged import (
    MergedSource,
    OrderedTable,
    merged_signatures,
    merged_tables,
    num_signature_files,
    write_merged_shard,
)
from shards.paths import FOLDERS, check_links, join_checked
from shards.range import Range
from shards.reader import Dataset
from shards.records import seal, unseal
from shards.storage.files import (
    FileEntry,
    canonical_json,
    is_intact,
    json_errors_explained,
    list_files,
    read_json,
    write_json,
)
from shards.storage.remote import AnyPath
from shards.tables import open_between, write_entry, write_parquet

LEDGER = "ledger.json"
"""The file that names the files of an unfinished generation (pipelines/commit/ledger.py)."""

FOLDER = "compact"
"""The folder in .work that holds the records of finished parts."""

TABLES = ("audit", "rejects", "dropped")
SIGNATURES = "signatures"
_HASHES = {"exact": "hash_high", "band": "hash", "slots": "order"}
"""The column that sorts a signature table, by the first word of its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedRange:
    """One range of the files that a compaction writes."""

    folder: str
    """The folder: train or validation, one of TABLES, or SIGNATURES."""
    name: str
    """The name of a source, or the kind of signatures, such as exact or band-07."""
    index: int
    total: int

    def __str__(self) -> str:
        return f"{self.folder}/{self.name}-{self.index:05}"

    @property
    def within(self) -> Range:
        """The range of the order or the hash."""
        return Range.of(self.index, self.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRecord:
    """The files that were written for a part."""

    part: str
    """The part as text, as str() returns it."""
    shards: tuple[ShardEntry, ...] = ()
    tables: tuple[TableEntry, ...] = ()

    def files(self) -> Iterator[tuple[str, FileEntry]]:
        """Yield the path in the dataset and the entry of each file of the part."""
        for shard in self.shards:
            yield from shard.named_files()
        for table in self.tables:
            yield table.path, table


class Compaction:
    """The compaction of a dataset, which must be locked."""

    def __init__(self, dataset: Dataset) -> None:
        """Prepare the compaction of a dataset."""
        self.directory = dataset.directory
        self.manifest = dataset.manifest
        self.members = self.manifest.generations
        self.erasure = Erasure(dataset)
        self.number = self.manifest.number + 1
        identity: list[Any] = ["compact", *(member.fingerprint for member in self.members)]
        if self.erasure.rows:
            identity.append({path: rows.tolist() for path, rows in self.erasure.rows.items()})
        self.fingerprint = hashlib.sha256(canonical_json(identity)).hexdigest()
        self.name = f"g{self.number:04d}-{self.fingerprint[:8]}"
        self._folder = self.directory / self.name
        # Records name the files of this folder.
        self._records = self.directory / WORK / FOLDER / self.name
        self._written: dict[CompactedRange, PartRecord] = {}
        self._sources = {
            name: MergedSource(dataset, name, self.erasure.rows) for name in self.manifest.sources()
        }

    # Reading

    def _check(self) -> None:
        """Read all files of the members, so that no damage is written under a new checksum."""
        for path, entry in track_files("check", self._files()):
            if not is_intact(self.directory / path, entry):
                raise DamageError(
                    f"{self.directory / path} is missing or damaged, and nothing was compacted: "
                    f"restore it from a copy. {called('shards verify')} {self.directory} lists all "
                    "damaged files."
                )

    def _check_idle(self) -> None:
        """Check that no generation is being built, because it would depend on the current ones."""
        folders = [f"{self.name}/{name}/-" for name in (*self._sources, *FOLDERS)]
        check_links(self.directory, [*folders, f"{WORK}/{FOLDER}/-"], files=False)
        path = self.directory / LEDGER
        last = self.manifest.last_generation
        if not path.exists():
            return
        with json_errors_explained(
            path, "rerun the command that was making it (--append or --watch)"
        ):
            begun: bool = read_json(path).get("number", 0) > last
        if begun:
            raise UserError(
                f"{path} names an unfinished generation: rerun the command that was making it "
                "(--append or --watch), then compact."
            )

    def _files(self) -> Iterator[tuple[str, FileEntry]]:
        alone = replace(self.manifest, removals=())
        return (pair for pair in alone.files() if pair[0] != self.manifest.vocabulary.path)

    # Writing

    @cached_property
    def parts(self) -> tuple[CompactedRange, ...]:
        """All parts, in the order in which they are written."""
        return (*self._source_parts(), *self._signature_parts())

    def _source_parts(self) -> Iterator[CompactedRange]:
        for name, shards in self._sources.items():
            totals = {TRAIN: shards.num_shards, VALIDATION: shards.num_validation}
            for folder in TABLES:
                totals[folder] = max(1, shards.num_shards) if self._tables[folder, name] else 0
            for folder, total in totals.items():
                for index in range(total):
                    yield CompactedRange(folder=folder, name=name, index=index, total=total)

    def _signature_parts(self) -> Iterator[CompactedRange]:
        # A kind that a member lacks is left out: it would be incomplete, and dedup reports missing
        # kinds. A member without documents has no signatures.
        kinds = [
            {table.source for table in member.signatures}
            for member in self.members
            if member.signatures or any(table.rows for table in member.audit)
        ]
        for kind in sorted(set.intersection(*kinds) if kinds else ()):
            total = num_signature_files([entries for _, entries in self._signatures(kind)])
            for index in range(total):
                yield CompactedRange(folder=SIGNATURES, name=kind, index=index, total=total)

    def _signatures(self, kind: str) -> list[tuple[Generation, list[TableEntry]]]:
        """Return the signature tables of a kind for each member."""
        return [
            (member, [entry for entry in member.signatures if entry.source == kind])
            for member in self.members
        ]

    @cached_property
    def _tables(self) -> Mapping[tuple[str, str], Sequence[OrderedTable]]:
        """The tables of all members by folder and source."""
        tables: defaultdict[tuple[str, str], list[OrderedTable]] = defaultdict(list)
        for member, folder in itertools.product(self.members, TABLES):
            for entry in getattr(member, folder):
                where = {"folder": folder, "generation": member.name, "source": entry.source}
                kept = partial(self.erasure.rows_to_keep, **where)
                table = OrderedTable(self.directory / entry.path, kept)
                tables[folder, entry.source].append(table)
        return tables

    def write(self) -> Iterator[str]:
        """Write all parts that are not finished yet; yield a line for each step.

        Raises:
            UserError: An --append or --watch was interrupted, or the disk is full.
            DamageError: A file is missing or damaged, or a link leads out of the folder.
        """
        self._check_idle()
        num_bytes = sum(entry.bytes for _, entry in self._files())
        yield f"{num_bytes:>16,}  bytes are checked first"
        self._check()
        parts = track("compact", self.parts, total=len(self.parts), unit="parts")
        for number, part in enumerate(parts, 1):
            record = self._finished(part)
            if record is None:
                record = self._write(part)
                num_bytes = sum(entry.bytes for _, entry in record.files())
                yield f"{num_bytes:>16,}  {f'{number} of {len(self.parts)}':>14}  {part}"
            self._written[part] = record

    def _finished(self, part: CompactedRange) -> PartRecord | None:
        """Return the record of a finished part; None if there is no record or a file is missing."""
        path = self._record_path(part)
        try:
            record = unseal(PartRecord, read_json(path), where=str(path))
        except (ValueError, DamageError):
            return None
        whole = all(is_intact(self.directory / name, entry) for name, entry in record.files())
        return record if whole else None

    def _record_path(self, part: CompactedRange) -> AnyPath:
        return join_checked(
            self._records, part.folder, f"{part.name}-{part.index:05}-{part.total}.json"
        )

    def _write(self, part: CompactedRange) -> PartRecord:
        """Write the files of a part and then its record, and return the record."""
        if part.folder in (TRAIN, VALIDATION):
            record = PartRecord(part=str(part), shards=(self._write_shard(part),))
        elif part.folder == SIGNATURES:
            record = PartRecord(part=str(part), tables=(self._write_signatures(part),))
        else:
            record = PartRecord(part=str(part), tables=self._write_table(part))
        write_json(self._record_path(part), seal(record))
        return record

    def _write_shard(self, part: CompactedRange) -> ShardEntry:
        prefix = "validation-" if part.folder == VALIDATION else ""
        return write_merged_shard(
            join_checked(self._folder, part.name, f"{prefix}{part.index:05}"),
            self._sources[part.name].slices(part.folder, part.within),
            directory=self.directory,
            dtype=self.manifest.tokenizer.token_dtype,
        )

    def _write_table(self, part: CompactedRange) -> tuple[TableEntry, ...]:
        held = self._tables[part.folder, part.name]
        tables = merged_tables(held, part.within, rows=sum(each.footer.num_rows for each in held))
        if part.folder == "rejects":
            tables = (rows for rows in tables if rows.num_rows)
        path = join_checked(self._folder, part.folder, f"{part.name}-{part.index:05}.parquet")
        return write_parquet(path, tables, directory=self.directory)

    def _write_signatures(self, part: CompactedRange) -> TableEntry:
        kind, _, _ = part.name.partition("-")
        edges = {"low": part.within.low, "high": part.within.high}
        tables = []
        for member, entries in self._signatures(part.name):
            for index, entry in enumerate(entries):
                if Range.of(index, len(entries)).overlaps(part.within):
                    rows = open_between(self.directory / entry.path, _HASHES[kind], **edges)
                    tables.append(
                        self.erasure.filter_signatures(rows, kind=kind, generation=member.name)
                    )
        rows = merged_signatures(tables, part.within)
        path = join_checked(self._folder, SIGNATURES, f"{part.name}-{part.index:05}.arrow")
        return write_entry(path, rows, directory=self.directory)

    # The end

    def commit(self) -> Generation:
        """Write the manifest, delete the records and return the new generation."""
        generation = Generation(
            number=self.number,
            name=self.name,
            fingerprint=self.fingerprint,
            inputs=tuple(entry for member in self.members for entry in member.inputs),
            sources={
                source: SourceEntry(
                    shards=self._made("shards", TRAIN, source),
                    validation=self._made("shards", VALIDATION, source),
                )
                for source in self._sources
            },
            **{folder: self._made("tables", folder) for folder in (*TABLES, SIGNATURES)},
            accounting=sum_accounts([self.erasure.accounting(member) for member in self.members]),
            libraries=self._libraries(),
        )
        manifest = replace(
            self.manifest,
            number=self.number,
            lineage=hashlib.sha256(f"{self.fingerprint}:{self.number}".encode()).hexdigest(),
            generations=(generation,),
            removals=(),
        )
        write_manifest(self.directory, manifest)
        remove_work(self.directory / WORK, FOLDER)
        if not list_files(self.directory / WORK):  # a run may have left other files there
            remove_work(self.directory / WORK)
        return generation

    def _made(self, kind: str, folder: str, name: str = "") -> tuple[Any, ...]:
        """Return the shards or tables that were written to a folder, for one source or all."""
        written = (
            getattr(record, kind)
            for part, record in self._written.items()
            if part.folder == folder and name in ("", part.name)
        )
        return tuple(itertools.chain.from_iterable(written))

    def _libraries(self) -> dict[str, str]:
        """Return the libraries that differ between generations, with all their versions."""
        usual = self.manifest.libraries
        names = sorted({name for member in self.members for name in member.libraries})
        versions = {
            name: {member.libraries.get(name, usual.get(name, "")) for member in self.members}
            for name in names
        }
        return {name: " and ".join(sorted(found)) for name, found in versions.items()}


def sum_accounts(accounts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of accounts, key by key."""
    sums: dict[str, Any] = {}
    for key in sorted({key for account in accounts for key in account}):
        values = [account[key] for account in accounts if key in account]
        nested = isinstance(values[0], Mapping)
        sums[key] = sum_accounts(values) if nested else sum(values)
    return sums
