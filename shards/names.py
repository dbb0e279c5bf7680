"""Finds documents by what people call them, however many names there are, in one scan.

SHARD:ROW        a row of a shard, as `trace` and `remove` print it
PATH:POSITION    the record of the input: all documents that were made from it
ID               the value of the column `id`
URL              the value of the column `url`

A name is compared with all of these. A pattern is compared with whole URLs: `*` stands for any
characters, slashes and none included; every other character, `?` and `[` too, for itself.
"""

import re
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
from shards.storage.arrow import damage_told
from shards.storage.disk import disk_errors_explained

_TEXT = pa.large_string()
_POSITION = re.compile("0|[1-9][0-9]{0,17}")


class Hits(NamedTuple):
    """Documents of one shard that have a name; each field is int64[n], sorted by row, then name.

    A document that has several of the names is there once for each.
    """

    rows: NDArray[np.int64]
    names: NDArray[np.int64]
    """Index into `Names.texts`."""


def read_names(path: Path) -> list[str]:
    """Return the names in a file, one a line, without white space around them.

    Raises:
        UserError: the file cannot be read, is not UTF-8, or has no name.
    """
    with disk_errors_explained(path):
        content = path.read_bytes()
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 ({error}): write one name a line.") from error
    if not (names := [line.strip() for line in lines if line.strip()]):
        raise UserError(f"{path} has no names in it: write one a line.")
    return names


class Names:
    """Names of documents, and patterns of URLs."""

    def __init__(self, names: Iterable[str] = (), *, patterns: Iterable[str] = ()) -> None:
        """Take names; of equal ones the first counts, and empty ones are left out.

        Raises:
            UserError: a pattern has nothing but asterisks.
        """
        self._names = tuple(dict.fromkeys(name for name in names if name))
        patterns = tuple(dict.fromkeys(patterns))
        self.texts: tuple[str, ...] = (*self._names, *patterns)
        self._patterns = [_regex(pattern) for pattern in patterns]
        self._value_set = pa.array(self._names, _TEXT)
        self._places = _Places.of(self._names)

    def find(self, dataset: Dataset, entries: Sequence[ShardEntry]) -> Iterator[Hits]:
        """Yield the hits in each of a dataset's shards; a name that is SHARD:ROW means that alone.

        Only the tables of documents are read, and none if every name is SHARD:ROW.

        Raises:
            DamageError: a table is missing or damaged.
        """
        addressed = self._addressed(entries)
        done = {name for hits in addressed.values() for name in hits.names.tolist()}
        scan = len(done) < len(self.texts)
        for entry in entries:
            hits = [addressed[entry.path]] if entry.path in addressed else []
            if scan and entry.documents:
                path = shard_file(dataset.directory / entry.path, ARROW)
                with damage_told(path):
                    found = self._match(dataset.table(entry))
                others = ~np.isin(found.names, list(done))
                hits.append(Hits(found.rows[others], found.names[others]))
            yield _sorted(hits)

    def _addressed(self, entries: Sequence[ShardEntry]) -> dict[str, Hits]:
        """Return the hits of names that are SHARD:ROW, by the path of the shard's entry."""
        documents = {entry.path: entry.documents for entry in entries}
        places = self._places
        inside = [
            i
            for i, (path, row) in enumerate(zip(places.paths, places.positions, strict=True))
            if row < documents.get(path, 0)
        ]
        by_path: dict[str, list[int]] = {}
        for i in inside:
            by_path.setdefault(places.paths[i], []).append(i)
        return {
            path: Hits(
                np.array([places.positions[i] for i in numbers], np.int64),
                np.array([places.names[i] for i in numbers], np.int64),
            )
            for path, numbers in by_path.items()
        }

    def _match(self, documents: pa.Table) -> Hits:
        """Return the hits among the rows of a shard, SHARD:ROW left aside."""
        hits = [self._places.match(documents)]
        for column in ("id", "url"):
            if column in documents.column_names and self._names:
                found = _index_in(documents[column], self._value_set)
                rows = np.flatnonzero(found >= 0)
                hits.append(Hits(rows, found[rows]))
        if "url" in documents.column_names:
            urls = _plain(documents["url"]) if self._patterns else None
            for i, pattern in enumerate(self._patterns, start=len(self._names)):
                matched = pc.fill_null(pc.match_substring_regex(urls, pattern), False)
                rows = np.flatnonzero(matched.to_numpy())
                hits.append(Hits(rows, np.full(len(rows), i)))
        return _sorted(hits)


class _Places:
    """Names that end in a colon and a number, such as SHARD:ROW and PATH:POSITION."""

    def __init__(self, paths: list[str], positions: list[int], names: list[int]) -> None:
        self.paths, self.positions, self.names = paths, positions, names
        distinct = list(dict.fromkeys(paths))
        codes = {path: code for code, path in enumerate(distinct)}
        self._value_set = pa.array(distinct, _TEXT)
        self._positions = np.unique(np.array(positions, np.int64))
        ranks = np.searchsorted(self._positions, np.array(positions, np.int64))
        keys = np.array([codes[path] for path in paths], np.int64) * len(self._positions) + ranks
        order = np.argsort(keys)
        self._keys, self._names = keys[order], np.array(names, np.int64)[order]

    @classmethod
    def of(cls, names: Sequence[str]) -> "_Places":
        """Return those among some names; `names` of the result are indices into them."""
        split = [(i, name.rpartition(":")) for i, name in enumerate(names)]
        places = [(path, int(text), i) for i, (path, _, text) in split if _POSITION.fullmatch(text)]
        paths, positions, indices = zip(*places, strict=True) if places else ((), (), ())
        return cls(list(paths), list(positions), list(indices))

    def match(self, documents: pa.Table) -> Hits:
        """Return the documents that were made from the record at one of the places."""
        if not self.paths or not {"path", "position"} <= set(documents.column_names):
            return _NONE
        positions = documents["position"].to_numpy()
        ranks = np.searchsorted(self._positions, positions).clip(max=len(self._positions) - 1)
        rows = np.flatnonzero(self._positions[ranks] == positions)
        if not len(rows):
            return _NONE
        codes = _index_in(documents["path"], self._value_set)[rows]
        # A path that is not wanted has a code of -1 and so a key below all others.
        keys = codes * len(self._positions) + ranks[rows]
        found = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        equal = self._keys[found] == keys
        return Hits(rows[equal], self._names[found[equal]])


_NONE = Hits(np.empty(0, np.int64), np.empty(0, np.int64))


def _sorted(hits: Sequence[Hits]) -> Hits:
    """Return hits as one, each once."""
    if not any(len(some.rows) for some in hits):
        return _NONE
    pairs = np.concatenate([np.stack(some, axis=1) for some in hits])
    distinct = np.unique(pairs, axis=0)
    return Hits(distinct[:, 0], distinct[:, 1])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as large_string."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(_TEXT)


def _index_in(column: pa.ChunkedArray, texts: pa.Array) -> NDArray[np.int64]:
    """Return int64[rows]: for each row the index of its text among some; -1 for others."""
    if pa.types.is_dictionary(column.type):
        # A shard has few paths and many rows.
        array = column.combine_chunks()
        codes = _index_in(pa.chunked_array([array.dictionary]), texts)
        indices = np.asarray(array.indices.fill_null(-1).to_numpy(), np.int64)
        return np.where(indices < 0, -1, np.append(codes, -1)[indices])
    found = pc.fill_null(pc.index_in(_plain(column), value_set=texts), -1)
    return np.asarray(found.to_numpy(), np.int64)


def _regex(pattern: str) -> str:
    """Return the regular expression of a pattern.

    Raises:
        UserError: it has nothing but asterisks.
    """
    if not pattern.strip("*"):
        raise UserError(
            f"the pattern {pattern!r} would match every URL: give one with a host or a path, as in "
            "'https://example.org/blog/*'. * stands for any characters, slashes included."
        )
    return r"(?s)\A" + ".*".join(re.escape(part) for part in pattern.split("*")) + r"\z"
