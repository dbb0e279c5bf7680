"""Removes documents from training: finds them by name and adds a removal.

The shards stay as they are. With the new manifest, windows leave the documents out; the number of
windows and their boundaries do not change. An earlier `DIR@n` still has the documents.
The signatures stay too, so that a later crawl cannot add the text again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import numpy as np

from shards.commands.output import quantity
from shards.commands.table import called
from shards.errors import UserError
from shards.maintenance.names import DocumentMatches, DocumentQuery
from shards.manifest import Manifest, Removal, ShardLocation, write_manifest
from shards.reader import Dataset
from shards.removals import write_removal
from shards.sampling.trace import ORIGIN, describe_document
from shards.storage.remote import AnyPath

_NUM_SHOWN = 20
_LINE = "  {:<18} {:<20} {:<10} {:>9} {:>14} {:>7}"


@dataclass(frozen=True, kw_only=True)
class SelectedDocument:
    """A document that has one of the names."""

    shard: str
    """The path of the document's shard in the dataset, without suffix."""
    row: int
    generation: str
    source: str
    split: str
    tokens: int
    origin: Mapping[str, Any]
    """The values of path, position, id and url, except those that the corpus lacks."""
    names: tuple[str, ...]
    """The names that the document matches."""
    removed_before: bool


@dataclass(frozen=True, kw_only=True)
class RemovalSet:
    """The documents that match some names, in both splits of all generations."""

    dataset: str
    manifest: int
    """The number of the manifest that was searched."""
    reason: str
    """The reason for the removal."""
    time: str
    """The time at which the documents were looked up, in UTC."""
    documents: tuple[SelectedDocument, ...]
    """The documents, sorted by generation, source, split, shard and row."""
    missing: tuple[str, ...]
    """The names that no document has."""
    removed_in: int | None = None
    """The number of the manifest that removes the documents; None if nothing was changed."""

    @property
    def new(self) -> list[SelectedDocument]:
        """The documents that have not been removed yet."""
        return [document for document in self.documents if not document.removed_before]

    def lines(self, *, dry_run: bool) -> Iterator[str]:
        """Yield the lines of a summary: sums by generation and source, shards and documents."""
        new = self.new
        yield f"{self.dataset}: {_amount(new)} {'would be' if dry_run else 'are'} removed"
        yield _LINE.format("generation", "source", "split", "documents", "tokens", "shards")
        for key, group in groupby(new, lambda each: (each.generation, each.source, each.split)):
            yield _LINE.format(*key, *(f"{number:,}" for number in _sums([*group])))
        if before := len(self.documents) - len(new):
            yield f"{quantity(before, 'document')} already removed"
        if self.missing:
            names = quantity(len(self.missing), "name")
            yield f"{names} without a document: {listed(self.missing)}"
        yield "documents by shard and row"
        for document in self.documents[:_NUM_SHOWN]:
            state = " (removed before)" if document.removed_before else ""
            yield f"  {describe_document(document.shard, document.row, document.origin)}{state}"
        if (more := len(self.documents) - _NUM_SHOWN) > 0:
            yield f"  and {more:,} more: --report FILE lists all"


def select(dataset: Dataset, names: DocumentQuery, *, reason: str = "") -> RemovalSet:
    """Return the documents of a dataset that have one of the names; every table is read once.

    Raises:
        UserError: There are no names.
        DamageError: A table is missing or damaged.
    """
    if not names.texts:
        raise UserError("no documents are named: give --documents FILE, --id ID or --url PATTERN.")
    locations = list(dataset.manifest.locations())
    found = names.find(dataset, [location.entry for location in locations])
    documents = [
        document
        for location, hits in zip(locations, found, strict=True)
        if len(hits.rows)
        for document in _documents(dataset, location, hits=hits, names=names.texts)
    ]
    known = {name for document in documents for name in document.names}
    return RemovalSet(
        dataset=str(dataset.directory),
        manifest=dataset.manifest.number,
        reason=reason,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        documents=tuple(documents),
        missing=tuple(name for name in names.texts if name not in known),
    )


def _documents(
    dataset: Dataset, location: ShardLocation, *, hits: DocumentMatches, names: Sequence[str]
) -> Iterator[SelectedDocument]:
    """Yield the documents of a shard that were found."""
    entry = location.entry
    rows, starts = np.unique(hits.rows, return_index=True)
    removed = np.isin(rows, dataset.removed.get(entry.path, []))
    found = np.split(hits.names, starts[1:])
    for i, values in enumerate(dataset.rows(entry, rows, ("tokens", *ORIGIN))):
        yield SelectedDocument(
            shard=entry.path,
            row=int(rows[i]),
            generation=location.generation.name,
            source=location.source,
            split=location.split,
            tokens=values.pop("tokens"),
            origin={name: value for name, value in values.items() if value not in (None, "")},
            names=tuple(names[name] for name in found[i].tolist()),
            removed_before=bool(removed[i]),
        )


def check_complete(selection: RemovalSet) -> None:
    """Check that every name matches a document.

    Raises:
        UserError: Some names match no document; the message lists these names.
    """
    if not selection.documents:
        raise UserError(
            f"{selection.dataset} has no document {listed(selection.missing)}: give SHARD:ROW, the "
            "input's PATH:POSITION, an id or a URL of the dataset "
            f"({called('shards inspect')} DIR --doc 0 shows its columns), or "
            "--missing-ok, if there may be none. The audit tables list dropped documents with "
            "their reasons."
        )
    if selection.missing:
        number = len(selection.missing)
        total = number + len({name for each in selection.documents for name in each.names})
        raise UserError(
            f"no document has the name {listed(selection.missing)} ({number} of {total} names), "
            "and nothing was removed. Check the names (--dry-run shows the documents that are "
            "found), or give --missing-ok to remove the others."
        )


def remove(directory: AnyPath, manifest: Manifest, selection: RemovalSet) -> Manifest:
    """Remove the documents of a selection and return the new manifest.

    The folder must be locked, and `manifest` must still be its current manifest. A crash leaves the
    dataset unchanged, with at most one file that no manifest names.
    """
    keys = {location.entry.path: location.key for location in manifest.locations()}
    rows = [(*keys[document.shard], document.row) for document in selection.new]
    number = manifest.number + 1
    entry = write_removal(directory, number, rows)
    removal = Removal(number=number, reason=selection.reason, documents=entry)
    changed = replace(manifest, number=number, removals=(*manifest.removals, removal))
    write_manifest(directory, changed)
    return changed


def listed(names: Iterable[str]) -> str:
    """Return the first few names as a list within a sentence."""
    every = list(names)
    more = f" and {len(every) - _NUM_SHOWN:,} more" if len(every) > _NUM_SHOWN else ""
    return ", ".join(every[:_NUM_SHOWN]) + more


def _sums(documents: Sequence[SelectedDocument]) -> tuple[int, int, int]:
    """Return the numbers of documents, tokens and shards."""
    tokens = sum(document.tokens for document in documents)
    return len(documents), tokens, len({document.shard for document in documents})


def _amount(documents: Sequence[SelectedDocument]) -> str:
    number, tokens, shards = _sums(documents)
    parts = quantity(number, "document"), quantity(tokens, "token"), quantity(shards, "shard")
    return f"{parts[0]} of {parts[1]} in {parts[2]}"
