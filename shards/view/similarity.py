"""Documents with an equal or a similar text, as the signatures of a dataset tell them.

    equal     the hash of a text is looked up in the sorted tables of all texts: exact-*
    similar   the 112 slots of a document are compared with those of every other one: slots-*

Slots are a byte each; the share that two documents have in common estimates the share of 5-grams
that their texts have in common (docs/dedup.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shards.manifest import Generation, TableEntry
from shards.reader import Dataset
from shards.storage.arrow import damage_told
from shards.tables import column, open_between, open_table
from shards.text_hash import digest, fold, halves
from shards.view.scan import Budget, Found

_EXACT, _SLOTS = "exact-", "slots-"


@dataclass(frozen=True, kw_only=True)
class Signed:
    """A document by its order."""

    generation: str
    order: int
    similarity: float = 1.0


class SimilarityIndex:
    """The signatures of a dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._generations = dataset.manifest.generations
        self._slots = [
            (generation, entry)
            for generation in self._generations
            for entry in _entries(generation, _SLOTS)
        ]

    @property
    def has_slots(self) -> bool:
        """Whether similar documents can be looked for."""
        return bool(self._slots)

    def owner(self, text: str) -> Signed | None:
        """Return the first document that had a text, up to white space; None if none is known.

        An order of 0 stands for a text that was erased.
        """
        high, low = (int(half[0]) for half in halves([digest(fold(text).encode())]))
        for generation in self._generations:
            entries = _entries(generation, _EXACT)
            if not entries:
                continue
            # Table k of n holds the k-th of n even ranges of the hash.
            path = self._dataset.directory / entries[(high * len(entries)) >> 64].path
            rows = open_between(path, "hash_high", low=high, high=high + 1)
            with damage_told(path):
                hits = column(rows, "order")[column(rows, "hash_low") == np.uint64(low)]
            if len(hits):
                return Signed(generation=generation.name, order=int(hits[0]))
        return None

    def slots(self, generation: str, order: int) -> NDArray[np.uint8] | None:
        """Return the slots (uint8[112]) of a document; None if it has none."""
        entries = [entry for each, entry in self._slots if each.name == generation]
        if not entries:
            return None
        path = self._dataset.directory / entries[(order * len(entries)) >> 64].path
        rows = open_between(path, "order", low=order, high=order + 1)
        with damage_told(path):
            return _array(rows["slots"].chunk(0))[0] if len(rows) else None

    def similar(
        self, slots: NDArray[np.uint8], *, least: float, start: int, budget: Budget
    ) -> Found[Signed]:
        """Return the documents whose similarity is at least some, from a row on.

        Args:
            slots: Of the document that others are compared with (uint8[112]).
            least: The similarity, 0 to 1.
            start: The row, counted over all tables of slots.
            budget: How long to go on; one block is looked at in any case.
        """
        total = sum(entry.rows for _, entry in self._slots)
        found: Found[Signed] = Found(start=start, at=start, total=total)
        first = 0
        for generation, entry in self._slots:
            if first + entry.rows > start:
                path = self._dataset.directory / entry.path
                table = open_table(path)
                with damage_told(path):
                    for at, orders, similarity in _compared(table, slots, from_=start - first):
                        for index in np.flatnonzero(similarity >= least).tolist():
                            found.hits.append(
                                Signed(
                                    generation=generation.name,
                                    order=int(orders[index]),
                                    similarity=float(similarity[index]),
                                )
                            )
                        found.at = first + at
                        if budget.is_spent:
                            return found
            first += entry.rows
        found.at = total
        return found


def _entries(generation: Generation, start: str) -> list[TableEntry]:
    return [
        entry for entry in generation.signatures if PurePosixPath(entry.path).name.startswith(start)
    ]


def _compared(
    table: pa.Table, slots: NDArray[np.uint8], *, from_: int
) -> Iterator[tuple[int, NDArray[np.uint64], NDArray[np.float64]]]:
    """Yield blocks of a table: the row after it, orders, and estimated similarities.

    The bytes of unlike slots agree by chance once in 256 times; this is subtracted.
    """
    row = 0
    for orders, others in zip(table["order"].chunks, table["slots"].chunks, strict=True):
        row += len(orders)
        if row <= from_:
            continue
        equal = (_array(others) == slots).mean(axis=1)
        yield row, orders.to_numpy(), (equal - 1 / 256) / (1 - 1 / 256)


def _array(chunk: pa.Array) -> NDArray[np.uint8]:
    """Return a column of bytes of one size as uint8[rows, size]."""
    size = chunk.type.byte_width
    data = np.frombuffer(chunk.buffers()[1], np.uint8)
    return data[chunk.offset * size : (chunk.offset + len(chunk)) * size].reshape(-1, size)
