"""Documents in shards: by number, by what their columns hold, by words in their texts.

A search looks at blocks of rows, one after the other, until it has a page of hits or has spent its
time. Texts exist only as tokens. A block is decoded by one lookup of all its tokens, into one
stretch of bytes where the words are looked for; special tokens are a NUL there, which no words
have, so no hit goes from one document into the next.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shards.format import ARROW, BIN
from shards.manifest import TRAIN, ShardEntry
from shards.reader import Dataset, Shard
from shards.storage.arrow import check_values, damage_told
from shards.view.query import BadQuery
from shards.view.scan import Budget, Found

EXACT, PREFIX, CONTAINS = "exact", "prefix", "contains"
MATCHES = (EXACT, PREFIX, CONTAINS)
"""How a value is compared with a column."""

_BLOCK_ROWS = 65_536
_BLOCK_TOKENS = 1 << 20
_OPEN_SHARDS = 32
_PLACE = re.compile("(.+):([0-9]{1,18})")
_MOST_WORDS = 500
"""Characters of what is looked for."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Documents of a source and a split."""

    source: str | None = None
    """None: of all."""
    split: str = TRAIN
    shard: str = ""
    """Only those of the shard with this path."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What documents are looked for; all that is given must be so."""

    name: str = ""
    """An id, a URL, or PATH:POSITION of the input."""
    language: str = ""
    column: str = ""
    value: str = ""
    match: str = EXACT
    words: str = ""
    """In the text; ASCII letters of either case are the same."""

    @property
    def is_all(self) -> bool:
        """Whether every document is wanted."""
        return not (self.name or self.language or self.column or self.words)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A document of a selection."""

    number: int
    """In the selection."""
    entry: ShardEntry
    row: int
    token: int = 0
    """Of the document, where the words were found."""


class ShardSearch:
    """The documents in the shards of a dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.shard = lru_cache(maxsize=_OPEN_SHARDS)(self._shard)
        """Returns the shard with a path that the manifest names; the last ones stay open."""
        self._by_path = {
            entry.path: entry
            for generation in dataset.manifest.generations
            for entry in generation.shards()
        }

    def _shard(self, path: str) -> Shard:
        return self.dataset.shard(self._by_path[path])

    def entries(self, selection: Selection) -> tuple[ShardEntry, ...]:
        """Return the shards of a selection, in order."""
        if selection.shard:
            return (self._by_path[selection.shard],)
        return self.dataset.manifest.shards(selection.source, split=selection.split)

    def total(self, selection: Selection) -> int:
        """Return how many documents a selection has."""
        return sum(entry.documents for entry in self.entries(selection))

    def place(self, selection: Selection, number: int) -> Place:
        """Return a document of a selection by its number."""
        for entry, first in _with_first(self.entries(selection)):
            if first <= number < first + entry.documents:
                return Place(number=number, entry=entry, row=number - first)
        total = self.total(selection)
        raise BadQuery(f"There is no document {number:,}: there are {total:,}, counted from 0.")

    def text_columns(self, selection: Selection) -> list[str]:
        """Return the columns of text that some shard of a selection has."""
        names: dict[str, None] = {}
        sources = {entry.path.rpartition("/")[0]: entry for entry in self.entries(selection)}
        for entry in list(sources.values())[:_OPEN_SHARDS]:
            for column in self.shard(entry.path).documents.schema:
                if _is_text(column.type):
                    names[column.name] = None
        return list(names)

    def search(
        self, selection: Selection, wanted: Wanted, *, start: int, most: int, budget: Budget
    ) -> Found[Place]:
        """Return the documents of a selection that are wanted, from a number on.

        At least one block is looked at, whatever the budget.

        Raises:
            BadQuery: What is wanted cannot be looked for.
            DamageError: A file is damaged.
        """
        needle = _needle(wanted.words)
        found: Found[Place] = Found(start=start, at=start, total=self.total(selection))
        for entry, first in _with_first(self.entries(selection)):
            if first + entry.documents <= start:
                continue
            shard = self.shard(entry.path)
            row = max(start - first, 0)
            while row < len(shard):
                stop = _block_end(shard, row, decode=bool(needle))
                for hit, token in self._block(shard, wanted, needle, range(row, stop)):
                    place = Place(number=first + hit, entry=entry, row=hit, token=token)
                    found.hits.append(place)
                    if len(found.hits) == most:
                        found.at = place.number + 1
                        return found
                row = stop
                found.at = first + row
                if budget.is_spent:
                    return found
        found.at = found.total
        return found

    def _block(
        self, shard: Shard, wanted: Wanted, needle: bytes, rows: range
    ) -> Iterator[tuple[int, int]]:
        """Yield row and token of the hits in some rows of a shard."""
        mask = np.ones(len(rows), np.bool_)
        with damage_told(shard.file(ARROW)):
            if wanted.language:
                mask &= _matches(shard, "language", EXACT, wanted.language, rows)
            if wanted.column:
                mask &= _matches(shard, wanted.column, wanted.match, wanted.value, rows)
            if wanted.name:
                mask &= _named(shard, wanted.name, rows)
        chosen = rows.start + np.flatnonzero(mask)
        if wanted.words or wanted.language or wanted.column:
            # What was removed is found by its name alone: a search would tell it letter by letter.
            chosen = chosen[~np.isin(chosen, shard.removed)]
        if needle:
            yield from self._with_words(shard, needle, chosen)
        else:
            yield from ((row, 0) for row in chosen.tolist())

    def _with_words(
        self, shard: Shard, needle: bytes, rows: NDArray[np.int64]
    ) -> Iterator[tuple[int, int]]:
        """Yield rows whose texts have some words, each with the token where these begin."""
        if not len(rows):
            return
        documents = [shard[row] for row in rows.tolist()]
        starts = np.cumsum([0, *map(len, documents)])
        whole = len(rows) == rows[-1] - rows[0] + 1
        first = int(shard.offsets[rows[0]])
        tokens = (
            shard.tokens[first : first + int(starts[-1])] if whole else np.concatenate(documents)
        )
        last = -1
        with damage_told(shard.file(BIN)):
            for position in _positions(tokens, needle, self._lowered):
                index = int(np.searchsorted(starts, position, side="right")) - 1
                if index != last:
                    last = index
                    yield int(rows[index]), int(position - starts[index])

    @cached_property
    def _lowered(self) -> pa.Array:
        """The bytes of every token with ASCII letters in lower case; NUL for special ones."""
        vocabulary = self.dataset.vocabulary
        special = vocabulary.special.tolist()
        pieces = [
            b"\0" if special[token] else piece.lower()
            for token, piece in enumerate(vocabulary.pieces())
        ]
        return pa.array(pieces, pa.large_binary())


def _with_first(entries: Sequence[ShardEntry]) -> Iterator[tuple[ShardEntry, int]]:
    """Yield shards, each with the number of its first document."""
    first = 0
    for entry in entries:
        yield entry, first
        first += entry.documents


def _block_end(shard: Shard, row: int, *, decode: bool) -> int:
    """Return the row after a block that begins at a row; it has one at least."""
    stop = min(row + _BLOCK_ROWS, len(shard))
    if decode:
        most = int(shard.offsets[row]) + _BLOCK_TOKENS
        stop = row + int(np.searchsorted(shard.offsets[row:stop], most))
    return max(stop, row + 1)


def _needle(words: str) -> bytes:
    """Return words as bytes to be looked for in texts of lower case.

    Raises:
        BadQuery: There are too many of them, or they are no text.
    """
    if len(words) > _MOST_WORDS:
        raise BadQuery(f"The words have more than {_MOST_WORDS} characters.")
    if "\0" in words:
        raise BadQuery("The words have a NUL, which no text has.")
    return words.encode().lower()


_COMPARED = {EXACT: pc.equal, PREFIX: pc.starts_with, CONTAINS: pc.match_substring}


def _matches(shard: Shard, name: str, match: str, value: str, rows: range) -> NDArray[np.bool_]:
    """Return which rows of a shard have a value in a column of text; none if it lacks that."""
    if name not in shard.documents.column_names or not _is_text(shard.documents[name].type):
        return np.zeros(len(rows), np.bool_)
    piece = shard.documents[name].slice(rows.start, len(rows))
    texts = check_values(piece, shard.file(ARROW)).cast(pa.large_string())
    found = pc.fill_null(_COMPARED[match](texts, value), False)
    return np.asarray(found.to_numpy(), np.bool_)


def _named(shard: Shard, name: str, rows: range) -> NDArray[np.bool_]:
    """Return which rows have a name: an id, a URL, or PATH:POSITION."""
    hits = _matches(shard, "id", EXACT, name, rows) | _matches(shard, "url", EXACT, name, rows)
    place = _PLACE.fullmatch(name)
    if place and "position" in shard.documents.column_names:
        path, position = place.groups()
        positions = shard.documents["position"].slice(rows.start, len(rows))
        here = pc.fill_null(pc.equal(positions, int(position)), False)
        hits |= _matches(shard, "path", EXACT, path, rows) & here.to_numpy()
    return hits


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _positions(tokens: NDArray[Any], needle: bytes, pieces: pa.Array) -> Iterator[int]:
    """Yield the tokens where some words begin, in order; a token may have several beginnings.

    Tokens are decoded a block at a time, each with as many of the next one as the words may have.
    """
    for first in range(0, len(tokens), _BLOCK_TOKENS):
        block = np.asarray(tokens[first : first + _BLOCK_TOKENS + len(needle)])
        text = pieces.take(pa.array(block.view(f"u{block.itemsize}")))
        _, offsets, data = text.buffers()
        if data is None:
            continue
        ends = np.frombuffer(offsets, np.int64)[: len(block) + 1]
        content = data.to_pybytes()
        at = content.find(needle)
        while at >= 0:
            position = int(np.searchsorted(ends, at, side="right")) - 1
            if position >= _BLOCK_TOKENS:
                break
            yield first + position
            at = content.find(needle, int(ends[position + 1]))
