"""Finds documents in shards by number, by values of columns or by words in their texts.

Texts exist only as tokens. A block of tokens is decoded with one lookup into one run of bytes,
which is searched for the words; special tokens become a NUL, which no words contain, so that no hit
crosses from one document into the next.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shards.format import ARROW, BIN
from shards.maintenance.names import DocumentQuery
from shards.manifest import TRAIN, VALIDATION, ShardLocation
from shards.reader import Dataset, Shard
from shards.storage.arrow import check_values, reraise_as_damage
from shards.view.query import BadQuery
from shards.view.scan import ScanResult, matching, search

SPLITS = (TRAIN, VALIDATION)
EXACT, PREFIX, CONTAINS = "exact", "prefix", "contains"
_COMPARED = {EXACT: pc.equal, PREFIX: pc.starts_with, CONTAINS: pc.match_substring}
MATCHES = tuple(_COMPARED)
"""The ways in which a value is compared with a column."""

_BLOCK_ROWS = 1 << 18
_BLOCK_TOKENS = 1 << 20
_OPEN_SHARDS = 32
_MAX_WORDS = 500
"""The maximum number of characters of the words to search for."""


@dataclass(frozen=True, kw_only=True)
class FoundDocument:
    """A document of a selection."""

    number: int
    """The number of the document in the selection."""
    location: ShardLocation
    row: int
    token: int = 0
    """The token of the document at which the words were found."""


@dataclass(frozen=True, kw_only=True)
class DocumentSet:
    """Documents of a source and a split, or of a shard."""

    locations: tuple[ShardLocation, ...]
    """The shards of the documents, in order."""
    source: str = ""
    """The source of the documents; "" stands for all sources."""
    split: str = TRAIN
    shard: str = ""
    """The path of the shard; "" if the documents are those of a source and a split."""

    @property
    def total(self) -> int:
        """The number of documents."""
        return sum(location.entry.documents for location in self.locations)

    @property
    def parameters(self) -> dict[str, str]:
        """The values of an address that select this set."""
        if self.shard:
            return {"shard": self.shard}
        return {"source": self.source, "split": "" if self.split == TRAIN else self.split}

    def numbered_shards(self) -> Iterator[tuple[int, ShardLocation]]:
        """Yield each shard with the number of its first document."""
        first = 0
        for location in self.locations:
            yield first, location
            first += location.entry.documents

    def place(self, number: int) -> FoundDocument:
        """Return the document with a number, which must be below the total."""
        first, location = next(
            each for each in reversed([*self.numbered_shards()]) if each[0] <= number
        )
        return FoundDocument(number=number, location=location, row=number - first)

    def number(self, shard: str, row: int) -> int:
        """Return the number of a document, given the path of its shard and its row."""
        return row + next(
            first for first, location in self.numbered_shards() if location.entry.path == shard
        )


@dataclass(frozen=True, kw_only=True)
class SearchQuery:
    """Conditions of a search, all of which must hold."""

    name: str = ""
    """An id, a URL, or PATH:POSITION of the input."""
    language: str = ""
    column: str = ""
    value: str = ""
    match: str = EXACT
    words: str = ""
    """Words in the text; the case of ASCII letters is ignored."""

    @property
    def needle(self) -> bytes:
        """The bytes of the words in lower case, to search in lower-case texts.

        Raises:
            BadQuery: The words are too long, or are not valid text.
        """
        if len(self.words) > _MAX_WORDS:
            raise BadQuery(f"The words have more than {_MAX_WORDS} characters.")
        if "\0" in self.words:
            raise BadQuery("The words contain a NUL character, which no text contains.")
        return self.words.encode().lower()

    @property
    def is_all(self) -> bool:
        """Whether there are no conditions, so that every document is found."""
        return not (self.name or self.language or self.column or self.words)

    @property
    def is_by_name_alone(self) -> bool:
        """Whether only whole names are compared, which cannot reveal removed texts bit by bit."""
        return not (self.words or self.language or self.column)

    @property
    def columns(self) -> set[str]:
        """The columns that are compared."""
        names = {"id", "url", "path", "position"} if self.name else set()
        return names | ({"language"} if self.language else set()) | {self.column} - {""}

    def expression(self, names: Collection[str]) -> pc.Expression:
        """Return the condition for a table with these columns; false if a column is missing."""

        def has(name: str, value: str, match: str = EXACT) -> pc.Expression:
            if name not in names:
                return pc.scalar(False)
            return _COMPARED[match](pc.field(name).cast(pa.large_string()), value)

        wanted = pc.scalar(True)
        if self.language:
            wanted &= has("language", self.language)
        if self.column:
            wanted &= has(self.column, self.value, self.match)
        return wanted


class ShardSearch:
    """The documents in the shards of a dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self.shard = lru_cache(maxsize=_OPEN_SHARDS)(self._opened)
        """Returns the open shard with a path from the manifest; recently used shards stay open."""
        self.locations = {
            location.entry.path: location for location in dataset.manifest.locations()
        }
        """The location of each shard by its path; sorted by generation, then source."""

    def _opened(self, path: str) -> Shard:
        return self._dataset.shard(self.locations[path].entry)

    def selection(self, *, source: str = "", split: str = TRAIN, shard: str = "") -> DocumentSet:
        """Return the documents of a source and split, or of a shard.

        Raises:
            BadQuery: There is no such shard.
        """
        if shard and shard not in self.locations:
            raise BadQuery(
                "There is no such shard in this dataset. The name of a shard is a path such as "
                "g0001-3f9c12ab/wudao/00000, which the page of a document shows."
            )
        if shard:
            location = self.locations[shard]
            return DocumentSet(
                locations=(location,), source=location.source, split=location.split, shard=shard
            )
        locations = (each for each in self.locations.values() if each.split == split)
        chosen = tuple(each for each in locations if source in ("", each.source))
        return DocumentSet(locations=chosen, source=source, split=split)

    def text_columns(self, selection: DocumentSet) -> list[str]:
        """Return the text columns that occur in some shard of a selection."""
        sources = {
            location.entry.path.rpartition("/")[0]: location for location in selection.locations
        }
        shards = [
            self.shard(location.entry.path) for location in list(sources.values())[:_OPEN_SHARDS]
        ]
        return list(dict.fromkeys(name for shard in shards for name in _text_columns(shard)))

    def search(
        self, selection: DocumentSet, wanted: SearchQuery, *, start: int, limit: int, seconds: float
    ) -> ScanResult[FoundDocument]:
        """Return the documents of a selection that match a query, beginning at a number.

        Raises:
            BadQuery: The words are too long, or contain a NUL.
            DamageError: A file is damaged.
        """
        blocks = self._blocks(selection, wanted, wanted.needle, start=start)
        return search(blocks, start=start, total=selection.total, limit=limit, seconds=seconds)

    def _blocks(
        self, selection: DocumentSet, wanted: SearchQuery, needle: bytes, *, start: int
    ) -> Iterator[tuple[int, Iterator[tuple[int, FoundDocument]]]]:
        for first, location in selection.numbered_shards():
            if first + location.entry.documents > start:
                shard = self.shard(location.entry.path)
                row = max(start - first, 0)
                while row < len(shard):
                    rows = range(row, _block_end(shard, row, decode=bool(needle)))
                    found = _matching(shard, wanted, rows)
                    hits = (
                        self._with_words(shard, needle, found)
                        if needle
                        else ((hit, 0) for hit in found.tolist())
                    )
                    yield first + rows.stop, _places(hits, first, location)
                    row = rows.stop

    def _with_words(
        self, shard: Shard, needle: bytes, rows: NDArray[np.int64]
    ) -> Iterator[tuple[int, int]]:
        """Yield the rows whose texts contain the words, each with the token where they begin."""
        documents = [shard[row] for row in rows.tolist()]
        if not documents:
            return
        tokens = np.concatenate(documents)
        firsts = np.cumsum([0, *map(len, documents)])
        with reraise_as_damage(shard.file(BIN)):
            text = self._lowered.take(pa.array(tokens.view(f"u{tokens.itemsize}")))
            _, offsets, data = text.buffers()
            begins = np.frombuffer(offsets, np.int64)[: len(tokens) + 1]
            content = data.to_pybytes() if data is not None else b""
            at = content.find(needle)
            while at >= 0:
                token = int(np.searchsorted(begins, at, side="right")) - 1
                index = int(np.searchsorted(firsts, token, side="right")) - 1
                yield int(rows[index]), token - int(firsts[index])
                at = content.find(needle, int(begins[firsts[index + 1]]))

    @cached_property
    def _lowered(self) -> pa.Array:
        """The bytes of every token with ASCII letters in lower case; NUL for special ones."""
        vocabulary = self._dataset.vocabulary
        special = vocabulary.special.tolist()
        pieces = [
            b"\0" if special[token] else piece.lower()
            for token, piece in enumerate(vocabulary.pieces())
        ]
        return pa.array(pieces, pa.large_binary())


def _block_end(shard: Shard, row: int, *, decode: bool) -> int:
    """Return the row after the block that begins at a row."""
    stop = min(row + _BLOCK_ROWS, len(shard))
    if decode:
        most = int(shard.offsets[row]) + _BLOCK_TOKENS
        stop = row + int(np.searchsorted(shard.offsets[row:stop], most))
    return stop


def _matching(shard: Shard, wanted: SearchQuery, rows: range) -> NDArray[np.int64]:
    """Return those of some rows of a shard that satisfy the conditions on columns."""
    found = np.arange(rows.start, rows.stop)
    if wanted.columns:
        compared = wanted.columns & {*shard.documents.column_names}
        table = shard.documents.select(["tokens", *compared]).slice(rows.start, len(rows))
        with reraise_as_damage(shard.file(ARROW)):
            checked = check_values(table, shard.file(ARROW))
            if wanted.name:
                found = found[DocumentQuery([wanted.name]).rows(checked)]
                checked = checked.take(found - rows.start)
            found = found[matching(checked, wanted.expression(compared))]
    return found if wanted.is_by_name_alone else found[~np.isin(found, shard.removed)]


def _text_columns(shard: Shard) -> Iterator[str]:
    for column in shard.documents.schema:
        dictionary = pa.types.is_dictionary(column.type)
        kind = column.type.value_type if dictionary else column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            yield column.name


def _places(
    hits: Iterator[tuple[int, int]], first: int, location: ShardLocation
) -> Iterator[tuple[int, FoundDocument]]:
    """Convert pairs of row and token to numbered documents."""
    for row, token in hits:
        yield (
            first + row,
            FoundDocument(number=first + row, location=location, row=row, token=token),
        )
