"""`manifest.json`, which lists the parts of a dataset; written last and only replaced as a whole.

    Manifest ─┬─ tokenizer, vocabulary, options, libraries
              ├─ generations ─┬─ inputs
              │               ├─ sources ── shards, validation ── files: size and crc32c
              │               └─ audit, signatures, rejects, accounting
              └─ removals

Every replacement gets the next number. Generations and removals store the number that added them,
so that `DIR@n` means the dataset as it was at number n. Overwriting or compacting a dataset starts
a new lineage: the files of older numbers no longer exist.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import numpy as np

from shards.commands.table import called
from shards.errors import DamageError, UserError
from shards.format import SUFFIXES
from shards.paths import Name, RelativePath, check_links
from shards.records import from_json, shorten, to_json
from shards.storage.address import is_url
from shards.storage.files import (
    Count,
    FileEntry,
    canonical_json,
    list_files,
    read_json,
    write_json,
)
from shards.storage.hub import PREFIX, HubName, dataset_name
from shards.storage.lock import lock_dir
from shards.storage.remote import AnyPath, any_path

NAME = "manifest.json"
REPORT = "report.json"
"""The report about the run that made the last generation (pipelines/report); not part of the
dataset."""
WORK = ".work"
"""The folder in a dataset that contains the work of an unfinished build."""
TRAIN = "train"
VALIDATION = "validation"

_FORMAT = "corpusmill-dataset"
_VERSION = 1
_MAX_IDS = {"uint16": 2**16, "int32": 2**31}
"""The number of ids that each token type can represent."""


def _check_suffixes(files: Mapping[str, FileEntry]) -> None:
    if set(files) != set(SUFFIXES):
        raise ValueError(f"expected the files {SUFFIXES}, found {sorted(files)}")


@dataclass(frozen=True, kw_only=True)
class ShardEntry:
    """One shard: three files with one stem."""

    path: RelativePath
    """The stem of the files, relative to the dataset, with forward slashes."""
    documents: Count
    tokens: Count
    files: Annotated[Mapping[str, FileEntry], _check_suffixes]
    """The files by suffix: bin, idx, arrow."""

    def named_files(self) -> Iterator[tuple[str, FileEntry]]:
        """Yield the path in the dataset and the entry of each file."""
        return ((f"{self.path}.{suffix}", entry) for suffix, entry in self.files.items())


@dataclass(frozen=True, kw_only=True)
class TableEntry(FileEntry):
    """A file with rows."""

    path: RelativePath
    """The path relative to the dataset, with forward slashes."""
    rows: Count

    @property
    def source(self) -> str:
        """The source of the rows, or the kind of signatures, taken from the name: SOURCE-NUMBER."""
        return PurePosixPath(self.path).stem.rpartition("-")[0]


@dataclass(frozen=True, kw_only=True)
class InputEntry:
    """A file that a generation was made from."""

    source: str
    path: str
    """The path relative to the source."""
    bytes: Count
    crc32c: tuple[Count, ...]
    """The checksum of each split of the file, in order."""


@dataclass(frozen=True, kw_only=True)
class SourceEntry:
    """The shards of one source in one generation."""

    shards: tuple[ShardEntry, ...]
    validation: tuple[ShardEntry, ...]

    def split(self, name: str) -> tuple[ShardEntry, ...]:
        """Return the shards of `train` or `validation`."""
        return {TRAIN: self.shards, VALIDATION: self.validation}[name]


@dataclass(frozen=True, kw_only=True)
class Account:
    """The accounting of a source's records, which the manifest stores as JSON."""

    read: int
    dropped: Mapping[str, int]
    """The number of dropped rows by reason."""
    kept: int = 0
    quarantined: Mapping[str, int] = field(default_factory=dict)
    """The number of quarantined rows by reason."""
    fanned_out: int = 0
    not_sampled: int = 0
    erased: int = 0
    bytes: Mapping[str, int] = field(default_factory=dict)
    """The number of bytes of text by verdict."""
    groups: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    """The numbers of rows and bytes by group and verdict."""


@dataclass(frozen=True, kw_only=True)
class Generation:
    """A named set of inputs and the shards made from them."""

    number: int
    """The number of the first manifest that contains it."""
    name: Name
    """The name of its folder, such as g0001-3f9c12ab."""
    fingerprint: str
    inputs: tuple[InputEntry, ...]
    sources: Mapping[Name, SourceEntry]
    audit: tuple[TableEntry, ...]
    signatures: tuple[TableEntry, ...]
    rejects: tuple[TableEntry, ...]
    accounting: Mapping[str, Mapping[str, Any]]
    """The numbers of records read, kept, dropped and quarantined, by source."""
    dropped: tuple[TableEntry, ...] = ()
    """Tables of the text, reason and metrics of dropped documents; only with `--keep-dropped`."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Versions that differ from those of the manifest, which are the first generation's."""

    def shards(self) -> list[ShardEntry]:
        """Return the shards of all sources, training shards first within each source."""
        return [
            shard
            for source in self.sources.values()
            for split in (TRAIN, VALIDATION)
            for shard in source.split(split)
        ]

    def tables(self) -> tuple[TableEntry, ...]:
        """Return all tables of the generation: its files except shards."""
        return (*self.audit, *self.signatures, *self.rejects, *self.dropped)


@dataclass(frozen=True, kw_only=True)
class ShardLocation:
    """A shard with its generation, source and split."""

    generation: Generation
    source: str
    split: str
    number: int
    """The number of the shard within its generation, source and split."""
    entry: ShardEntry

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The key of the shard in removals: generation, source, split and number."""
        return self.generation.name, self.source, self.split, self.number


@dataclass(frozen=True, kw_only=True)
class Removal:
    """Documents that windows leave out in manifest `number` and all later ones."""

    number: int
    reason: str
    documents: TableEntry
    """An Arrow file with the columns of `removals.SCHEMA`."""


@dataclass(frozen=True, kw_only=True)
class TokenizerEntry:
    """The properties of the tokenizer that training needs."""

    spec: str
    """The kind of tokenizer: sentencepiece, tiktoken, tokenizers …"""
    name: str
    sha256: str
    """The SHA-256 of the tokenizer's files."""
    pieces: int
    """The number of ids in use or reserved, before padding."""
    vocabulary_size: int
    """The padded number of ids: the rows of the vocabulary and of an embedding."""
    dtype: str
    """The type of a token: uint16 or int32."""
    special: Mapping[str, int]
    """Ids by role: eos, cls, mask, sop, eop, gmask …"""

    def __post_init__(self) -> None:
        ids = (self.pieces - 1, self.special.get("eos", -1), *self.special.values())
        most = _MAX_IDS.get(self.dtype, 0)
        if not all(0 <= number < self.vocabulary_size <= most for number in ids):
            raise ValueError(
                f"the tokenizer has {shorten(self.pieces)} pieces, {shorten(self.vocabulary_size)} "
                f"ids of type {shorten(self.dtype)} and the special ids "
                f"{shorten(dict(self.special))}; expected: the type {' or '.join(_MAX_IDS)}, all "
                "ids below the vocabulary size, and an id for eos"
            )

    @property
    def token_dtype(self) -> np.dtype[Any]:
        """The little-endian type of a token."""
        return np.dtype(self.dtype).newbyteorder("<")

    @property
    def label(self) -> str:
        """The name of the tokenizer in messages: kind, file and size of the vocabulary."""
        return f"{self.spec}:{self.name} ({self.vocabulary_size:,} ids)"


def distinct_labels(first: tuple[str, str], second: tuple[str, str]) -> tuple[str, str]:
    """Return different names for two models, for use in messages.

    Args:
        first: A name, and the SHA-256 of its file.
        second: The name and the hash of the other model.

    Returns:
        The two names; if they are equal, each is followed by the first digits of its hash.
    """
    if first[0] != second[0]:
        return first[0], second[0]
    one, other = (f"{name} (a file of SHA-256 {sha256[:8]}…)" for name, sha256 in (first, second))
    return one, other


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The manifest of a dataset at one number."""

    number: Count
    """The number of the manifest: 1 for the first, and one more for every replacement."""
    lineage: str
    """A hash that stays the same while the dataset grows and changes when it is overwritten."""
    corpus: str
    options: Mapping[str, Any]
    """The semantic options, that is, the options that affect the bytes."""
    tokenizer: TokenizerEntry
    vocabulary: TableEntry
    libraries: Mapping[str, str]
    """Versions of the libraries that affect the bytes."""
    generations: tuple[Generation, ...]
    removals: tuple[Removal, ...] = ()

    def as_of(self, number: int) -> "Manifest":
        """Return the dataset as it was at a manifest number.

        Raises:
            UserError: there is no such number, or the dataset has been overwritten since.
        """
        first = min(generation.number for generation in self.generations)
        if not first <= number <= self.number:
            raise UserError(
                f"there is no manifest number {number}: this dataset has the numbers {first} to "
                f"{self.number}. Overwriting or compacting a dataset discards its earlier numbers."
            )
        return replace(
            self,
            number=number,
            generations=tuple(
                generation for generation in self.generations if generation.number <= number
            ),
            removals=tuple(removal for removal in self.removals if removal.number <= number),
        )

    @property
    def last_generation(self) -> int:
        """The manifest number of the last generation; later manifests may add removals."""
        return max(generation.number for generation in self.generations)

    @cached_property
    def identity(self) -> str:
        """The SHA-256 of everything except numbers and lineage; the same for equal data."""
        content = _content(self)
        del content["number"], content["lineage"]
        for entry in (*content["generations"], *content["removals"]):
            del entry["number"]
        return _sha256(content)

    def sources(self) -> tuple[str, ...]:
        """Return the names of all sources, sorted."""
        return tuple(
            sorted({name for generation in self.generations for name in generation.sources})
        )

    def source_entries(self) -> Iterator[tuple[Generation, str, SourceEntry]]:
        """Yield the generation, name and entry of every source, sorted by generation and name."""
        for generation in self.generations:
            for name, entry in sorted(generation.sources.items()):
                yield generation, name, entry

    def locations(self) -> Iterator[ShardLocation]:
        """Yield all shards, sorted by generation, source, split and number."""
        for generation, name, source in self.source_entries():
            for split in (TRAIN, VALIDATION):
                for number, entry in enumerate(source.split(split)):
                    yield ShardLocation(
                        generation=generation, source=name, split=split, number=number, entry=entry
                    )

    def shards(self, source: str | None = None, *, split: str = TRAIN) -> tuple[ShardEntry, ...]:
        """Return the shards of one source or of all sources, by generation, source and number."""
        return tuple(
            location.entry
            for location in self.locations()
            if source in (None, location.source) and split == location.split
        )

    def names(self) -> set[str]:
        """Return the folders of generations and the paths of the files outside these folders."""
        removals = {removal.documents.path for removal in self.removals}
        return {self.vocabulary.path, *(each.name for each in self.generations)} | removals

    def files(self) -> Iterator[tuple[str, FileEntry]]:
        """Yield the path in the dataset and the entry of every file except the manifest."""
        yield self.vocabulary.path, self.vocabulary
        for split in (TRAIN, VALIDATION):
            for shard in self.shards(split=split):
                yield from shard.named_files()
        for generation in self.generations:
            for table in generation.tables():
                yield table.path, table
        for removal in self.removals:
            yield removal.documents.path, removal.documents


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The sums over some shards."""

    shards: int
    documents: int
    tokens: int
    bytes: int
    """The size of all files of the shards in bytes."""


def sum_shards(shards: Iterable[ShardEntry]) -> Totals:
    """Return the totals of shards."""
    entries = tuple(shards)
    return Totals(
        shards=len(entries),
        documents=sum(entry.documents for entry in entries),
        tokens=sum(entry.tokens for entry in entries),
        bytes=sum(file.bytes for entry in entries for file in entry.files.values()),
    )


@contextmanager
def lock_dataset(directory: AnyPath, *, shared: bool = False, wait: bool = False) -> Iterator[None]:
    """Lock the folder of a dataset for writing, as `lock_dir` does.

    Raises:
        UserError: The dataset is published or consists of links, or another process has
            locked the folder.
    """
    if str(directory).startswith("hf://"):
        raise UserError(
            f"{directory} is a published dataset: change the folder that it was uploaded from, and "
            "upload that folder again."
        )
    if _is_linked(directory):
        raise UserError(
            f"{directory / NAME} is a symbolic link: the files of this dataset are links into a "
            "cache or an annex. It can be read, but not changed. Copy it with the linked files "
            f"(cp -rL {directory} COPY), and change the copy."
        )
    with lock_dir(directory, shared=shared, wait=wait):
        yield


def write_manifest(directory: AnyPath, manifest: Manifest) -> None:
    """Write or replace the dataset's manifest atomically. Every file it names must exist."""
    content = {"format": _FORMAT, "version": _VERSION, **_content(manifest)}
    _mark_replaced(directory, manifest)
    write_json(directory / NAME, {**content, "sha256": _sha256(content)})


def _mark_replaced(directory: AnyPath, manifest: Manifest) -> None:
    """Touch the files that only the current manifest names: `prune` counts their days from now."""
    if not isinstance(directory, Path) or not (directory / NAME).exists():
        return
    with suppress(UserError):  # nobody reads a dataset with a damaged manifest
        for name in read_manifest(directory).names() - manifest.names():
            with suppress(OSError):  # it is gone, or another user owns it
                os.utime(directory / name)


def read_current_manifest(directory: AnyPath) -> "Manifest | None":
    """Return the newest manifest of a dataset; None if its folder has none yet.

    Raises:
        DamageError: The manifest is damaged or was edited.
    """
    return read_manifest(directory) if (directory / NAME).exists() else None


def read_manifest(directory: AnyPath) -> Manifest:
    """Return the manifest of a dataset.

    Raises:
        UserError: there is no dataset, or a newer corpusmill wrote it.
        DamageError: the manifest is damaged or was edited.
    """
    path = directory / NAME
    if not path.is_file():
        raise UserError(_absence(directory))
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DamageError(f"{path} is not a dataset's manifest: its format is not {_FORMAT!r}.")
    if content.get("version") != _VERSION:
        raise UserError(
            f"{path} was written by a newer corpusmill (manifest version "
            f"{shorten(content.get('version'))}; this one reads version {_VERSION}): upgrade "
            "corpusmill."
        )
    if content.pop("sha256", None) != _sha256(content):
        raise DamageError(
            f"{path} was changed after it was written (its sha256 does not match): restore it "
            "from a copy, or build the dataset again."
        )
    del content["format"], content["version"]
    try:
        manifest = from_json(Manifest, content, where="manifest")
        _check(manifest)
    except ValueError as error:
        raise DamageError(f"{path}: {error}: build the dataset again.") from error
    check_file_locations(directory, manifest)
    return manifest


def check_file_locations(directory: AnyPath, manifest: Manifest) -> None:
    """Check that a dataset's files are in its folder, unless it consists of links.

    Args:
        directory: The folder of the dataset.
        manifest: The manifest that names the dataset's files.

    Raises:
        DamageError: A link leads out of the folder.
    """
    paths = (name for name, _ in manifest.files())
    check_links(directory, paths, files=not _is_linked(directory))


def _is_linked(directory: AnyPath) -> bool:
    # If the manifest is a link as well, all files are links, as in a cache or an annex.
    return (directory / NAME).is_symlink()


def _check(manifest: Manifest) -> None:
    """Check properties of a manifest that its readers rely on and its types do not express.

    Raises:
        ValueError: A property does not hold; the message names the field.
    """
    if not manifest.generations:
        raise ValueError("manifest.generations is empty")
    for name, most in _MAX_OPTIONS.items():
        value = manifest.options.get(name) or 0
        if type(value) is not int or not 0 <= value <= most:
            raise ValueError(
                f"manifest.options.{name} is {shorten(value)}, not a whole number from 0 to {most}"
            )
    numbers = [generation.number for generation in manifest.generations]
    for number in (*numbers, *(removal.number for removal in manifest.removals)):
        if not 1 <= number <= manifest.number:
            raise ValueError(
                f"a generation or a removal has the number {shorten(number)}, and manifest.number "
                f"is {manifest.number}"
            )
    for generation in manifest.generations:
        for source, account in generation.accounting.items():
            _check_account(account, where=f"manifest.accounting.{source}")


_MAX_OPTIONS = {"shards": 2**20, "shard_tokens": 2**48, "split_bytes": 2**63}
"""Options that compaction uses, with their largest values."""


def _check_account(account: Mapping[str, Any], *, where: str) -> None:
    known = account.keys() & {field.name for field in fields(Account)}
    from_json(Account, {key: account[key] for key in known}, where=where)
    levels = [account]
    for level in levels:  # the list grows in the loop
        levels += [value for value in level.values() if isinstance(value, dict)]
        counts = {key: value for key, value in level.items() if not isinstance(value, dict)}
        from_json(_Counts, {"counts": counts}, where=where)


@dataclass(frozen=True, kw_only=True)
class _Counts:
    counts: Mapping[str, Count]


def parse_dataset(text: str | AnyPath) -> tuple[AnyPath, int | None]:
    """Return the folder and number of `DIR` or `DIR@n`; an existing folder's name is not split.

    For hf:OWNER/NAME[@REVISION] the folder is its address on the hub.
    """
    name, number = split_number(str(text))
    published = hub_name(name)
    return any_path(name if published is None else published.url), number


def split_number(text: str) -> tuple[str, int | None]:
    """Return `DIR` and n of `DIR@n`; the name of an existing folder is not split."""
    matched = re.fullmatch(r"(.+)@(\d{1,18})", text, re.DOTALL)
    if matched is None or Path(text).is_dir():
        return text, None
    return matched[1], int(matched[2])


def hub_name(text: str) -> HubName | None:
    """Return the published dataset that hf:OWNER/NAME[@REVISION] names; None for a folder or a URL.

    Raises:
        UserError: The text begins with hf: but names no dataset.
    """
    is_published = text.startswith(PREFIX) and not is_url(text)
    return dataset_name(text) if is_published else None


def _absence(directory: AnyPath) -> str:
    if isinstance(directory, Path) and not directory.exists():
        return f"{directory} does not exist: give a dataset's folder (--output of a pipeline)."
    if list_files(directory / WORK):
        return (
            f"{directory} contains no dataset yet: a build in it is unfinished. Run the same "
            "command again to finish it."
        )
    return (
        f"{directory} contains no dataset: it has no {NAME}. Give the folder that a pipeline wrote "
        f"(its --output), or run one: {called('wudao')} --output DIR"
    )


def _content(manifest: Manifest) -> dict[str, Any]:
    """Return a manifest as JSON; a generation's `libraries` is left out if it is empty."""
    content: dict[str, Any] = to_json(manifest)
    for generation in content["generations"]:
        if not generation["libraries"]:
            del generation["libraries"]
    return content


def _sha256(content: object) -> str:
    return hashlib.sha256(canonical_json(content)).hexdigest()
