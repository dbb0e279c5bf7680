"""Rows about removed documents in the tables of a dataset, which compaction leaves out.

    audit         their rows
    rejects       rows from the same places of the input
    dropped       the same, all texts that equal a removed one, and all near-duplicates, because
                  the documents that they resemble are no longer known
    signatures    their bands and slots; only the 128-bit hash of their text stays, so that the text
                  is recognized in a later crawl
    report        every example, because examples quote texts of the run

The hash of a text is found by the order of its document, in the tables of its generation. Hashes of
texts that an earlier compaction erased have the order ERASED_ORDER there.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from shards.manifest import REPORT, Generation
from shards.reader import Dataset
from shards.removals import Rows
from shards.storage.arrow import read_table
from shards.storage.files import (
    FileEntry,
    json_errors_explained,
    read_json,
    read_verified,
    size_if_there,
    write_json,
)
from shards.storage.remote import AnyPath
from shards.tables import column
from shards.text_hash import ERASED_ORDER, digest, fold_spaces, join_halves

PAGE = "report.html"
"""The page about the run that made a dataset; `pipelines.report` writes it and REPORT."""

_PLACE = ("path", "position")
_NEAR_DUPLICATE = "near-duplicate"
"""The reason of a document that is similar to another (pipelines/segments/rows.py)."""


class Erasure:
    """The removed documents of a dataset and their traces outside shards."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.rows: Mapping[str, Rows] = dataset.removed
        """The removed rows by the path of their shard's entry."""

    @property
    def num_documents(self) -> int:
        """The number of erased documents."""
        return sum(len(rows) for rows in self.rows.values())

    @cached_property
    def _documents(self) -> Mapping[tuple[str, str], list[dict[str, Any]]]:
        """The order and place of each document, by generation and source."""
        found: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for location in self.dataset.manifest.locations():
            if location.entry.path in self.rows:
                rows = self.dataset.rows(
                    location.entry, self.rows[location.entry.path], ("order", *_PLACE)
                )
                found[location.generation.name, location.source] += rows
        return found

    def orders(self, generation: str, source: str | None = None) -> NDArray[np.uint64]:
        """Return the orders of the erased documents of a generation, or of one of its sources."""
        orders = [
            row["order"]
            for (of, name), rows in self._documents.items()
            if of == generation and source in (None, name)
            for row in rows
        ]
        return np.array(orders, np.uint64)

    @cached_property
    def _places(self) -> Mapping[str, set[tuple[Any, ...]]]:
        """The path and position of each erased document by source, over all generations."""
        places: defaultdict[str, set[tuple[Any, ...]]] = defaultdict(set)
        for (_, source), rows in self._documents.items():
            places[source].update(
                tuple(row[name] for name in _PLACE) for row in rows if row.keys() >= {*_PLACE}
            )
        return places

    @cached_property
    def _digests(self) -> frozenset[bytes]:
        """The hashes of the erased texts."""
        found: list[bytes] = []
        for generation in self.dataset.manifest.generations:
            orders = self.orders(generation.name)
            for entry in generation.signatures if len(orders) else ():
                if entry.source == "exact":
                    path = self.dataset.directory / entry.path
                    table = read_table(read_verified(path, entry), path)
                    rows = np.isin(column(table, "order"), orders)
                    halves = (column(table, f"hash_{half}")[rows] for half in ("high", "low"))
                    found += join_halves(*halves)
        return frozenset(found)

    def _are_erased(self, texts: Iterable[str]) -> NDArray[np.bool_]:
        return np.array(
            [digest(fold_spaces(text).encode()) in self._digests for text in texts], np.bool_
        )

    def rows_to_keep(
        self, rows: pa.Table, *, folder: str, generation: str, source: str
    ) -> NDArray[np.bool_]:
        """Return a mask of the rows of an audit, rejects or dropped table that stay.

        Args:
            rows: The rows.
            folder: audit, rejects or dropped.
            generation: The generation that has the table.
            source: The source of the table.
        """
        if not self.rows:
            return np.ones(len(rows), np.bool_)
        stay = ~np.isin(column(rows, "order"), self.orders(generation, source))
        if folder == "audit":
            return stay
        stay &= ~self._in_places(rows, source)
        if folder == "dropped":
            stay &= ~self._are_erased(rows["text"].to_pylist())
            stay &= pc.fill_null(pc.not_equal(rows["reason"], _NEAR_DUPLICATE), True).to_numpy()
        return stay

    def _in_places(self, rows: pa.Table, source: str) -> NDArray[np.bool_]:
        """Return a mask of the rows about records that an erased document was made from."""
        found = np.zeros(len(rows), np.bool_)
        places = self._places.get(source)
        if places and set(_PLACE) <= set(rows.column_names):
            positions = np.array([position for _, position in places], np.int64)
            near = np.flatnonzero(np.isin(rows["position"].to_numpy(), positions))
            pairs = zip(*(rows[name].take(near).to_pylist() for name in _PLACE), strict=True)
            found[near] = [pair in places for pair in pairs]
        return found

    def filter_signatures(self, rows: pa.Table, *, kind: str, generation: str) -> pa.Table:
        """Return the rows of a signature table without those of erased documents.

        Args:
            rows: The rows.
            kind: exact, band or slots.
            generation: The generation that has the table.
        """
        order = column(rows, "order")
        erased = np.isin(order, self.orders(generation))
        if not erased.any():
            return rows
        if kind != "exact":
            return rows.filter(pa.array(~erased))
        bare = pa.array(np.where(erased, np.uint64(ERASED_ORDER), order))
        index = rows.schema.get_field_index("order")
        return rows.set_column(index, rows.schema.field(index), bare)

    def accounting(self, generation: Generation) -> dict[str, Any]:
        """Return the accounting of a generation, which counts the documents as erased."""
        accounts: dict[str, Any] = deepcopy(dict(generation.accounting))
        for source, account in accounts.items():
            orders = self.orders(generation.name, source)
            if len(orders):
                _move(account, len(orders))
            for entry in generation.audit if len(orders) else ():
                if entry.source == source:
                    for row in _kept_rows(self.dataset.directory / entry.path, entry, orders):
                        _move_text(account, row)
        return accounts

    def clear_report(self) -> list[str]:
        """Remove texts and groups from the report; return a line for each change.

        The page is deleted: `pipelines.report` writes it again.
        """
        directory, changed = self.dataset.directory, []
        if size_if_there(directory / REPORT) >= 0:
            report = read_json(directory / REPORT)
            with json_errors_explained(
                directory / REPORT, "delete it, so that no text is left in it"
            ):
                accounts = {
                    source: {key: value for key, value in account.items() if key != "groups"}
                    for source, account in report.get("accounting", {}).items()
                }
                cleared = {**report, "accounting": accounts, "examples": {}, "groups": {}}
            if cleared != report:
                write_json(directory / REPORT, cleared)
                changed.append(f"{REPORT}: without examples")
        if size_if_there(directory / PAGE) >= 0:
            (directory / PAGE).unlink()
            changed.append(f"{PAGE}: deleted")
        return changed


def _kept_rows(path: AnyPath, entry: FileEntry, orders: NDArray[np.uint64]) -> list[dict[str, Any]]:
    """Return group and bytes of each kept row of an audit table whose order is in `orders`."""
    with pq.ParquetFile(pa.py_buffer(read_verified(path, entry))) as file:
        present = set(file.schema_arrow.names)
        names = [name for name in ("order", "verdict", "group", "bytes") if name in present]
        table = file.read(names)
    rows = table.filter(pa.array(np.isin(column(table, "order"), orders))).to_pylist()
    return [row for row in rows if row["verdict"] == "kept"]


def _move(sums: dict[str, Any], number: int) -> None:
    """Subtract a number of documents or bytes from `kept` and add it to `erased`."""
    sums["kept"] -= number
    sums["erased"] = sums.get("erased", 0) + number


def _move_text(account: dict[str, Any], row: Mapping[str, Any]) -> None:
    """Subtract an erased document and its bytes from those kept in an account."""
    num_bytes = row.get("bytes") or 0
    if "kept" in (sums := account.get("bytes", {})):
        _move(sums, num_bytes)
    groups, name = account.get("groups", {}), row.get("group")
    if kept := groups.get(name, {}).get("kept"):
        kept["rows"] -= 1
        kept["bytes"] -= num_bytes
        if not kept["rows"]:  # the name of a group may reveal whose text it was
            del groups[name]["kept"]
        if not groups[name]:
            del groups[name]
