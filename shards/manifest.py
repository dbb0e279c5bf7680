"""What a dataset consists of: `manifest.json`, written last, replaced as a whole, never changed.

    Manifest ─┬─ tokenizer, vocabulary, options, libraries
              ├─ generations ─┬─ inputs
              │               ├─ sources ── shards, validation ── files: size and crc32c
              │               └─ audit, signatures, rejects, accounting
              └─ removals

Every replacement has the next number. A generation and a removal carry the number that brought
them, so that `DIR@n` is the dataset as it was at number n. A dataset that is overwritten or
compacted starts a new lineage: what an older number named is no longer there.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shards.errors import DamageError, UserError
from shards.records import from_json, to_json
from shards.storage.files import FileEntry, canonical, read_json, write_json
from shards.storage.remote import AnyPath, RemotePath, any_path

NAME = "manifest.json"
WORK = ".work"
"""The folder in a dataset that holds what an unfinished build has made so far."""
TRAIN = "train"
VALIDATION = "validation"

_FORMAT = "corpusmill-dataset"
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class ShardEntry:
    """One shard: three files with one stem."""

    path: str
    """The stem, relative to the dataset, with forward slashes."""
    documents: int
    tokens: int
    files: Mapping[str, FileEntry]
    """By suffix: bin, idx, arrow."""


@dataclass(frozen=True, kw_only=True)
class TableEntry(FileEntry):
    """A file of rows."""

    path: str
    """Relative to the dataset, with forward slashes."""
    rows: int


@dataclass(frozen=True, kw_only=True)
class InputEntry:
    """A file that a generation was made of."""

    source: str
    path: str
    """Relative to its source."""
    bytes: int
    crc32c: tuple[int, ...]
    """Of each split of the file, in order."""


@dataclass(frozen=True, kw_only=True)
class SourceEntry:
    """The shards of one source in one generation."""

    shards: tuple[ShardEntry, ...]
    validation: tuple[ShardEntry, ...]

    def split(self, name: str) -> tuple[ShardEntry, ...]:
        """Return the shards of `train` or `validation`."""
        return {TRAIN: self.shards, VALIDATION: self.validation}[name]


@dataclass(frozen=True, kw_only=True)
class Generation:
    """A named set of inputs and the shards made of them."""

    number: int
    """Of the manifest that brought it."""
    name: str
    """Of its folder: g0001-3f9c12ab."""
    fingerprint: str
    inputs: tuple[InputEntry, ...]
    sources: Mapping[str, SourceEntry]
    audit: tuple[TableEntry, ...]
    signatures: tuple[TableEntry, ...]
    rejects: tuple[TableEntry, ...]
    accounting: Mapping[str, Any]
    """Records read, kept, dropped by reason and quarantined, as the run counted them."""
    dropped: tuple[TableEntry, ...] = ()
    """Text, reason and metrics of what was dropped, if it was to be kept."""

    def tables(self) -> tuple[TableEntry, ...]:
        """Return every file but the shards."""
        return (*self.audit, *self.signatures, *self.rejects, *self.dropped)


@dataclass(frozen=True, kw_only=True)
class Removal:
    """Documents that are padding from this number on."""

    number: int
    reason: str
    documents: TableEntry
    """An Arrow file: generation, source, split, shard, row."""


@dataclass(frozen=True, kw_only=True)
class TokenizerEntry:
    """What made the token ids; all that training needs to know of it."""

    spec: str
    """The engine's kind: sentencepiece, tiktoken, tokenizers …"""
    name: str
    sha256: str
    """Of the tokenizer's files."""
    pieces: int
    """Ids in use or reserved, before padding."""
    vocabulary_size: int
    """Padded: the rows of the vocabulary and of an embedding."""
    dtype: str
    """Of a token: uint16 or int32."""
    special: Mapping[str, int]
    """Ids by role: eos, cls, mask, sop, eop, gmask …"""

    @property
    def token_dtype(self) -> np.dtype[Any]:
        """The little-endian type of a token."""
        return np.dtype(self.dtype).newbyteorder("<")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A dataset at one number."""

    number: int
    """1 for the first; grows with every replacement."""
    lineage: str
    """A hash that stays while the dataset grows and is new when it is overwritten."""
    corpus: str
    options: Mapping[str, Any]
    """The semantic options: those that decide bytes."""
    tokenizer: TokenizerEntry
    vocabulary: TableEntry
    libraries: Mapping[str, str]
    """Versions of the libraries that decide bytes."""
    generations: tuple[Generation, ...]
    removals: tuple[Removal, ...] = ()

    def as_of(self, number: int) -> "Manifest":
        """Return the dataset as it was at a number.

        Raises:
            UserError: no such number, or what it named was overwritten.
        """
        first = min(generation.number for generation in self.generations)
        if not first <= number <= self.number:
            raise UserError(
                f"manifest number {number} is not there: this dataset has the numbers {first} to "
                f"{self.number}. (Numbers before an overwrite are gone.)"
            )
        return replace(
            self,
            number=number,
            generations=tuple(part for part in self.generations if part.number <= number),
            removals=tuple(part for part in self.removals if part.number <= number),
        )

    @property
    def identity(self) -> str:
        """SHA-256 of everything but numbers and lineage: the same data have the same identity."""
        content = to_json(self)
        del content["number"], content["lineage"]
        for part in (*content["generations"], *content["removals"]):
            del part["number"]
        return _sha256(content)

    def sources(self) -> tuple[str, ...]:
        """Return the names of all sources, sorted."""
        return tuple(sorted({name for part in self.generations for name in part.sources}))

    def shards(self, source: str | None = None, *, split: str = TRAIN) -> tuple[ShardEntry, ...]:
        """Return the shards of a source or of all, by generation, then source, then shard."""
        return tuple(
            shard
            for generation in self.generations
            for name, entry in sorted(generation.sources.items())
            if source in (None, name)
            for shard in entry.split(split)
        )

    def files(self) -> Iterator[tuple[str, FileEntry]]:
        """Yield every file of the dataset but the manifest: its path in the dataset, its entry."""
        yield self.vocabulary.path, self.vocabulary
        for split in (TRAIN, VALIDATION):
            for shard in self.shards(split=split):
                for suffix, entry in shard.files.items():
                    yield f"{shard.path}.{suffix}", entry
        for generation in self.generations:
            for table in generation.tables():
                yield table.path, table
        for removal in self.removals:
            yield removal.documents.path, removal.documents


@dataclass(frozen=True, kw_only=True)
class Totals:
    """How much some shards hold."""

    shards: int
    documents: int
    tokens: int
    bytes: int
    """Of all their files."""


def sum_shards(shards: Iterable[ShardEntry]) -> Totals:
    """Return the sums over shards."""
    entries = tuple(shards)
    return Totals(
        shards=len(entries),
        documents=sum(entry.documents for entry in entries),
        tokens=sum(entry.tokens for entry in entries),
        bytes=sum(file.bytes for entry in entries for file in entry.files.values()),
    )


def write_manifest(directory: AnyPath, manifest: Manifest) -> None:
    """Make `manifest` the dataset's manifest, in one step. Every file it names must be there."""
    content = {"format": _FORMAT, "version": _VERSION, **to_json(manifest)}
    write_json(directory / NAME, {**content, "sha256": _sha256(content)})


def read_manifest(directory: AnyPath) -> Manifest:
    """Return the manifest of a dataset.

    Raises:
        UserError: there is no dataset, or a newer corpusmill wrote it.
        DamageError: the manifest is not as it was written.
    """
    path = directory / NAME
    if not path.is_file():
        raise UserError(_absence(directory))
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DamageError(f"{path} is no manifest of a dataset: its format is not {_FORMAT!r}.")
    if content.get("version") != _VERSION:
        raise UserError(
            f"{path} was written by a newer corpusmill (manifest version {content.get('version')};"
            f" this one reads version {_VERSION}): upgrade corpusmill."
        )
    if content.pop("sha256", None) != _sha256(content):
        raise DamageError(
            f"{path} was changed after it was written (its sha256 does not match): restore it "
            "from a copy, or build the dataset again."
        )
    del content["format"], content["version"]
    try:
        return from_json(Manifest, content, where="manifest")
    except ValueError as error:
        raise DamageError(f"{path}: {error}: build the dataset again.") from error


def parse_dataset(text: str | AnyPath) -> tuple[AnyPath, int | None]:
    """Return folder and manifest number of `DIR` or `DIR@n`; a folder of that name comes first."""
    matched = re.fullmatch(r"(.+)@(\d+)", str(text), re.DOTALL)
    if matched is None or Path(str(text)).is_dir():
        return any_path(str(text)), None
    return any_path(matched[1]), int(matched[2])


def _absence(directory: AnyPath) -> str:
    if isinstance(directory, Path) and not directory.exists():
        return f"{directory} does not exist: give the folder of a dataset (--output of a pipeline)."
    work = directory / WORK
    if work.files() if isinstance(work, RemotePath) else work.exists():
        return (
            f"{directory} holds no dataset yet: a build in it is unfinished. Run the same command "
            "again to finish it."
        )
    return (
        f"{directory} holds no dataset: no {NAME} there. Give the folder that a pipeline wrote "
        "(its --output), or run one: python -m pipelines.wudao --output DIR"
    )


def _sha256(content: object) -> str:
    return hashlib.sha256(canonical(content)).hexdigest()
