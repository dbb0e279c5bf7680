"""Finds documents with an equal or a similar text by the signatures of a dataset.

    equal     the hash of a text is looked up in the sorted tables of all texts: exact-*
    similar   the 112 slots of a document are compared with those of all others: slots-*

Each slot is a byte; the share of equal slots of two documents estimates the share of 5-grams that
their texts have in common (docs/dedup.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shards.manifest import TableEntry
from shards.reader import Dataset
from shards.storage.arrow import reraise_as_damage
from shards.storage.remote import AnyPath
from shards.tables import column, open_between, open_table
from shards.text_hash import digest, fold_spaces, split_halves
from shards.view.query import BadQuery
from shards.view.scan import ScanResult, search


@dataclass(frozen=True, kw_only=True)
class SignedDocument:
    """A document, identified by its order."""

    generation: str
    order: int
    similarity: float = 1.0


class SimilarityIndex:
    """The signatures of a dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self._directory = dataset.directory
        self._exact, self._slots = (
            [
                (generation.name, entry)
                for generation in dataset.manifest.generations
                for entry in generation.signatures
                if entry.source == kind
            ]
            for kind in ("exact", "slots")
        )

    @property
    def has_slots(self) -> bool:
        """Whether the dataset has slots, which a search for similar documents needs."""
        return bool(self._slots)

    def owner(self, text: str) -> SignedDocument | None:
        """Return the first known document with a text, ignoring white space; None if there is none.

        An order of 0 means that the text was erased.
        """
        high, low = (int(half[0]) for half in split_halves([digest(fold_spaces(text).encode())]))
        for generation in dict.fromkeys(name for name, _ in self._exact):
            path, rows = self._between(self._exact, generation, "hash_high", high)
            with reraise_as_damage(path):
                hits = column(rows, "order")[column(rows, "hash_low") == np.uint64(low)]
            if len(hits):
                return SignedDocument(generation=generation, order=int(hits[0]))
        return None

    def slots(self, generation: str, order: int) -> NDArray[np.uint8] | None:
        """Return the slots (uint8[112]) of a document; None if the document has no slots."""
        if generation not in (name for name, _ in self._slots):
            return None
        path, rows = self._between(self._slots, generation, "order", order)
        with reraise_as_damage(path):
            return _array(rows["slots"].chunk(0))[0] if len(rows) else None

    def _between(
        self, tables: list[tuple[str, TableEntry]], generation: str, name: str, value: int
    ) -> tuple[AnyPath, pa.Table]:
        """Return the path of a generation's table, and the rows in it that have a value.

        Table k of n contains the k-th of n even ranges of this uint64 column.
        """
        entries = [entry for each, entry in tables if each == generation]
        path = self._directory / entries[(value * len(entries)) >> 64].path
        return path, open_between(path, name, low=value, high=value + 1)

    def similar(
        self, slots: NDArray[np.uint8], *, least: float, start: int, seconds: float
    ) -> ScanResult[SignedDocument]:
        """Return the documents with at least a given similarity, beginning at a row.

        Args:
            slots: The slots of the document to compare with (uint8[112]).
            least: The minimum similarity, from 0 to 1.
            start: The first row, counted over all tables of slots.
            seconds: The maximum duration of the search.

        Raises:
            BadQuery: The row is after the last one.
        """
        total = sum(entry.rows for _, entry in self._slots)
        if start > total:
            raise BadQuery(f"There is no signature {start:,}: there are {total:,}, counted from 0.")
        blocks = self._compared(slots, least=least, start=start)
        return search(blocks, start=start, total=total, seconds=seconds)

    def _compared(
        self, slots: NDArray[np.uint8], *, least: float, start: int
    ) -> Iterator[tuple[int, list[tuple[int, SignedDocument]]]]:
        """Yield the row after each block, beginning at a row, and the block's similar documents.

        Unrelated slots are equal by chance in one of 256 cases; this is subtracted.
        """
        end = 0
        for generation, entry in self._slots:
            row, end = end, end + entry.rows
            if end <= start:
                continue
            path = self._directory / entry.path
            table = open_table(path)
            for orders, others in zip(table["order"].chunks, table["slots"].chunks, strict=True):
                row += len(orders)
                if row > start:
                    with reraise_as_damage(path):
                        equal = (_array(others) == slots).mean(axis=1)
                    similarity = (equal - 1 / 256) / (1 - 1 / 256)
                    yield (
                        row,
                        [
                            (0, SignedDocument(generation=generation, order=order, similarity=each))
                            for order, each in zip(
                                orders.to_pylist(), similarity.tolist(), strict=True
                            )
                            if each >= least
                        ],
                    )


def _array(chunk: pa.Array) -> NDArray[np.uint8]:
    """Return a column of byte strings of equal size as uint8[rows, size]."""
    size = chunk.type.byte_width
    data = np.frombuffer(chunk.buffers()[1], np.uint8)
    return data[chunk.offset * size : (chunk.offset + len(chunk)) * size].reshape(-1, size)
