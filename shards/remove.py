"""Takes documents out of training: finds them by name and adds a removal to the manifest.

The shards stay as they are. From the new manifest number on, windows leave the documents out, and
windows and their number do not change; `DIR@n` of before still has them. The signatures stay too,
so that a later crawl cannot bring the text back.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shards.errors import UserError
from shards.format import ARROW, shard_file
from shards.manifest import (
    TRAIN,
    VALIDATION,
    Generation,
    Manifest,
    Removal,
    ShardEntry,
    write_manifest,
)
from shards.names import Hits, Names
from shards.reader import Dataset
from shards.removals import SCHEMA, Rows, write_removal
from shards.storage.arrow import check_values
from shards.storage.remote import AnyPath

_NUM_LISTED = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardPart:
    """The documents of one shard that were found."""

    generation: Generation
    source: str
    split: str
    number: int
    """Of the shard, within generation, source and split."""
    entry: ShardEntry
    documents: pa.Table
    """A row of the shard's table for each of `rows`."""
    rows: Rows
    removed: NDArray[np.bool_]
    """bool[rows]: removed before."""
    hits: Hits
    """By which names they were found."""

    @property
    def tokens(self) -> NDArray[np.int64]:
        """int64[rows]: tokens of each document."""
        return np.asarray(self.documents["tokens"].to_numpy(), np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """The documents that some names stand for, in both splits of all generations."""

    directory: AnyPath
    """Of the dataset."""
    parts: tuple[ShardPart, ...]
    """By generation, source, split and shard; shards without any are left out."""
    names: tuple[str, ...]
    """What was asked for, as `Names.texts`."""
    missing: tuple[str, ...]
    """Names that no document has."""

    @classmethod
    def of(cls, dataset: Dataset, names: Names) -> "Selection":
        """Return the documents of a dataset that have one of the names; every table is read once.

        Raises:
            UserError: there are no names.
            DamageError: a table is missing or damaged.
        """
        places = list(_places(dataset.manifest))
        found = np.zeros(len(names.texts), np.bool_)
        parts = []
        entries = [entry for *_, entry in places]
        for place, hits in zip(places, names.find(dataset, entries), strict=True):
            if len(hits.rows):
                parts.append(_part(dataset, place, hits))
                found[hits.names] = True
        missing = [
            name for name, was_found in zip(names.texts, found, strict=True) if not was_found
        ]
        if not names.texts:
            raise UserError("name the documents: --documents FILE, --id ID or --url PATTERN.")
        return cls(
            directory=dataset.directory,
            parts=tuple(parts),
            names=names.texts,
            missing=tuple(missing),
        )

    @property
    def num_documents(self) -> int:
        """Documents that are not removed yet."""
        return sum(int((~part.removed).sum()) for part in self.parts)

    def check_complete(self) -> None:
        """Check that every name stands for a document.

        Raises:
            UserError: some do not; the message lists them.
        """
        if not self.parts:
            raise UserError(
                f"{self.directory} has no document {listed(self.missing)}: give SHARD:ROW, the "
                "input's PATH:POSITION, an id or a URL as the dataset has it (python -m shards "
                "inspect DIR --doc 0 shows which columns there are); or --missing-ok, if there may "
                "be none. What was dropped, and why, is in the audit tables."
            )
        if self.missing:
            raise UserError(
                f"no document has the name {listed(self.missing)} ({len(self.missing)} of "
                f"{len(self.names)} names), and nothing was removed. Look for mistakes (--dry-run "
                "shows what is found), or give --missing-ok to remove the others."
            )

    def table(self) -> pa.Table:
        """Return the documents that are not removed yet, as `removals.SCHEMA`."""
        return pa.concat_tables([SCHEMA.empty_table(), *map(_removal_rows, self.parts)])


def remove(
    directory: AnyPath, manifest: Manifest, selection: Selection, *, reason: str
) -> Manifest:
    """Remove the documents of a selection; return the manifest, which has the next number.

    The folder must be locked, and its manifest still be the given one. A crash leaves the dataset
    as it was, and at most a file that no manifest names.
    """
    number = manifest.number + 1
    entry = write_removal(directory, number, selection.table())
    removal = Removal(number=number, reason=reason, documents=entry)
    changed = replace(manifest, number=number, removals=(*manifest.removals, removal))
    write_manifest(directory, changed)
    return changed


def listed(names: Iterable[str]) -> str:
    """Return names as a list in a sentence, without those after the first few."""
    every = list(names)
    more = f" and {len(every) - _NUM_LISTED:,} more" if len(every) > _NUM_LISTED else ""
    return ", ".join(every[:_NUM_LISTED]) + more


_Place = tuple[Generation, str, str, int, ShardEntry]
"""Generation, source, split, number of the shard, its entry."""


def _places(manifest: Manifest) -> Iterator[_Place]:
    for generation, name, source in manifest.source_entries():
        for split in (TRAIN, VALIDATION):
            for number, entry in enumerate(source.split(split)):
                yield generation, name, split, number, entry


def _part(dataset: Dataset, place: _Place, hits: Hits) -> ShardPart:
    generation, source, split, number, entry = place
    rows = np.unique(hits.rows)
    path = shard_file(dataset.directory / entry.path, ARROW)
    return ShardPart(
        generation=generation,
        source=source,
        split=split,
        number=number,
        entry=entry,
        documents=check_values(dataset.table(entry).take(rows), path),
        rows=rows,
        removed=np.isin(rows, dataset.removed.get(entry.path, [])),
        hits=hits,
    )


def _removal_rows(part: ShardPart) -> pa.Table:
    rows = part.rows[~part.removed]
    keys = (part.generation.name, part.source, part.split, part.number)
    columns = [[key] * len(rows) for key in keys]
    return pa.table([*columns, rows], schema=SCHEMA)
