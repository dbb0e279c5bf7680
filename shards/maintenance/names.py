"""Finds, in one scan, the documents that have one of many names: an id, a URL or a place.

SHARD:ROW        a row of a shard, as `trace` and `remove` print it
PATH:POSITION    the record of the input: all documents that were made from it
ID               the value of the column `id`
URL              the value of the column `url`

A name is compared with all of these. A pattern is compared with whole URLs: `*` matches any number
of characters, slashes included; every other character, even `?` or `[`, matches itself.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shards.errors import UserError
from shards.format import ARROW, shard_file
from shards.manifest import ShardEntry
from shards.reader import Dataset
from shards.storage.arrow import reraise_as_damage
from shards.storage.disk import disk_errors_explained
from shards.tables import without_dictionary

_TEXT = pa.large_string()
_POSITION = re.compile("0|[1-9][0-9]{0,17}")


class DocumentMatches(NamedTuple):
    """Documents of one shard that match a name; each field is int64[n], sorted by row, then name.

    A document that matches several names is listed once for each.
    """

    rows: NDArray[np.int64]
    names: NDArray[np.int64]
    """The index of the name in `DocumentQuery.texts`."""


def read_names(path: Path) -> list[str]:
    """Return the names in a file, one per line, stripped of white space.

    Raises:
        UserError: the file cannot be read, is not UTF-8, or contains no names.
    """
    with disk_errors_explained(path):
        content = path.read_bytes()
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 ({error}): write one name per line.") from error
    if not (names := [line.strip() for line in lines if line.strip()]):
        raise UserError(f"{path} has no names in it: write one name per line.")
    return names


class DocumentQuery:
    """Names of documents, and patterns of URLs."""

    def __init__(self, names: Iterable[str] = (), *, patterns: Iterable[str] = ()) -> None:
        """Store the names, except duplicates and empty ones.

        Raises:
            UserError: a pattern has only asterisks.
        """
        names = tuple(dict.fromkeys(name for name in names if name))
        patterns = tuple(dict.fromkeys(patterns))
        self.texts: tuple[str, ...] = (*names, *patterns)
        self._patterns = [_regex(pattern) for pattern in patterns]
        self._value_set = pa.array(names, _TEXT)
        split = [(i, *name.rpartition(":")) for i, name in enumerate(names)]
        self._places = [(i, path, int(at)) for i, path, _, at in split if _POSITION.fullmatch(at)]

    def find(self, dataset: Dataset, entries: Sequence[ShardEntry]) -> Iterator[DocumentMatches]:
        """Yield the matches in each shard; a name in the form SHARD:ROW matches only that row.

        Only tables of documents are read; if every name is SHARD:ROW, no table is read.

        Raises:
            DamageError: a table is missing or damaged.
        """
        documents = {entry.path: entry.documents for entry in entries}
        addressed: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for name, path, row in self._places:
            if row < documents.get(path, 0):
                addressed[path].append((row, name))
        done = [name for pairs in addressed.values() for _, name in pairs]
        for entry in entries:
            hits = [np.array(addressed[entry.path], np.int64).reshape(-1, 2)]
            if len(done) < len(self.texts) and entry.documents:
                with reraise_as_damage(shard_file(dataset.directory / entry.path, ARROW)):
                    found = np.concatenate([hits[0][:0], *self._matches(dataset.table(entry))])
                hits.append(found[~np.isin(found[:, 1], done)])
            rows, names = np.unique(np.concatenate(hits), axis=0).T
            yield DocumentMatches(rows, names)

    def rows(self, documents: pa.Table) -> NDArray[np.int64]:
        """Return the rows of a table of documents whose columns match one of the names."""
        hits = [np.zeros((0, 2), np.int64), *self._matches(documents)]
        return np.unique(np.concatenate(hits)[:, 0])

    def _matches(self, documents: pa.Table) -> Iterator[NDArray[np.int64]]:
        """Yield the matches among the rows of a shard as pairs of row and name, int64[n, 2]."""
        columns = set(documents.column_names)
        for column in sorted({"id", "url"} & columns):
            yield self._named(documents[column], np.arange(len(documents)))
        if self._places and {"path", "position"} <= columns:
            wanted = [position for _, _, position in self._places]
            rows = np.flatnonzero(np.isin(documents["position"].to_numpy(), wanted))
            paths, positions = (_plain(documents[name].take(rows)) for name in ("path", "position"))
            # Not a constant, because the first scalar makes pyarrow import pandas (0.5 s).
            colon = pa.scalar(":", _TEXT)
            yield self._named(pc.binary_join_element_wise(paths, positions, colon), rows)
        urls = _plain(documents["url"]) if self._patterns and "url" in columns else _NO_TEXTS
        for name, pattern in enumerate(self._patterns, start=len(self._value_set)):
            matched = pc.fill_null(pc.match_substring_regex(urls, pattern), False)
            rows = np.flatnonzero(matched.to_numpy())
            yield np.stack([rows, np.full(len(rows), name)], axis=1)

    def _named(self, texts: pa.ChunkedArray, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the matches (int64[n, 2]) among the texts of some rows."""
        names = pc.fill_null(pc.index_in(_plain(texts), value_set=self._value_set), -1).to_numpy()
        found = np.flatnonzero(names >= 0)
        hits: NDArray[np.int64] = np.stack([rows[found], names[found]], axis=1)
        return hits


_NO_TEXTS = pa.chunked_array([], _TEXT)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as large_string."""
    return without_dictionary(column).cast(_TEXT)


def _regex(pattern: str) -> str:
    """Return the regular expression of a pattern.

    Raises:
        UserError: the pattern has only asterisks.
    """
    if not pattern.strip("*"):
        raise UserError(
            f"the pattern {pattern!r} would match every URL: give one with a host or a path, as in "
            "'https://example.org/blog/*'. * stands for any characters, slashes included."
        )
    return r"(?s)\A" + ".*".join(re.escape(part) for part in pattern.split("*")) + r"\z"
