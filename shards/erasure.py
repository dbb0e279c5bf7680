"""What goes with the removed documents of a dataset when their bytes are erased.

    shards        their rows and tokens
    audit         their rows
    rejects       rows from the same places of the input
    dropped       these, all texts that are equal to one of theirs, and all near-duplicates, because
                  nobody knows any more of which documents they are
    signatures    their bands and slots; of their text nothing but the bare 128-bit hash stays, by
                  which a later crawl that brings the text back is recognized
    report        every example: texts of the run, whichever documents they are of

The hash of a text is found by the order of its document, in the tables of its generation. What was
erased before has the order 0 there, by which later runs know it: they keep no copy of it.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from shards.format import ARROW, shard_file
from shards.manifest import REPORT, Generation, ShardEntry
from shards.reader import Dataset
from shards.removals import Rows
from shards.storage.arrow import check_values, damage_told, read_all
from shards.storage.files import (
    FileEntry,
    read_json,
    shape_expected,
    size_if_there,
    whole_bytes,
    write_json,
)
from shards.storage.remote import AnyPath
from shards.tables import column, plain
from shards.text_hash import digest, fold, whole

PAGE = "report.html"
"""Like REPORT about the run that made a dataset, no part of it: `pipelines.report` writes them."""

BARE = 0
"""The order that stands beside the hash of an erased text."""

_PLACE = ("path", "position")
_NEAR_DUPLICATE = "near-duplicate"
"""The reason of a document that is similar to another (pipelines/segments/rows.py)."""


class Erasure:
    """The removed documents of a dataset, and what is left of them outside shards."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.rows: Mapping[str, Rows] = dataset.removed
        """By the path of their shard's entry."""

    @property
    def num_documents(self) -> int:
        """How many documents are erased."""
        return sum(len(rows) for rows in self.rows.values())

    @cached_property
    def _documents(self) -> dict[tuple[str, str], pa.Table]:
        """Order and place of the erased documents, by name of their generation and source."""
        return {
            (generation.name, name): self._table((*source.shards, *source.validation))
            for generation, name, source in self.dataset.manifest.source_entries()
        }

    def _table(self, shards: Iterable[ShardEntry]) -> pa.Table:
        tables = [pa.table({"order": pa.array([], pa.uint64())})]
        schema = tables[0].schema
        for shard in shards:
            if shard.path in self.rows:
                path = shard_file(self.dataset.directory / shard.path, ARROW)
                with damage_told(path):
                    documents = self.dataset.table(shard)
                    names = [name for name in ("order", *_PLACE) if name in documents.column_names]
                    rows = documents.select(names).take(self.rows[shard.path])
                    chosen = check_values(rows, path)
                    tables.append(pa.table([plain(chosen[name]) for name in names], names))
                    schema = pa.unify_schemas([schema, tables[-1].schema])
        return pa.concat_tables(tables, promote_options="default")

    def orders(self, generation: str, source: str | None = None) -> np.ndarray:
        """Return the orders (uint64) of the erased documents of a generation, or a source of it."""
        orders = [
            column(table, "order")
            for (of, name), table in self._documents.items()
            if of == generation and source in (None, name)
        ]
        return np.concatenate([np.zeros(0, np.uint64), *orders])

    @cached_property
    def _places(self) -> dict[str, set[tuple[str, int]]]:
        """Path and position of the erased documents by source, whatever their generation."""
        places: dict[str, set[tuple[str, int]]] = {}
        for (_, source), table in self._documents.items():
            if set(_PLACE) <= set(table.column_names):
                pairs = zip(*(table[name].to_pylist() for name in _PLACE), strict=True)
                places.setdefault(source, set()).update(pairs)
        return places

    @cached_property
    def _digests(self) -> frozenset[bytes]:
        """The hashes of the erased texts."""
        found: list[bytes] = []
        for generation in self.dataset.manifest.generations:
            orders = self.orders(generation.name)
            for entry in generation.signatures:
                if entry.source == "exact":
                    path = self.dataset.directory / entry.path
                    table = read_all(whole_bytes(path, entry), path)
                    rows = np.isin(column(table, "order"), orders)
                    halves = (column(table, f"hash_{half}")[rows] for half in ("high", "low"))
                    found += whole(*halves)
        return frozenset(found)

    def _are_erased(self, texts: Iterable[str]) -> NDArray[np.bool_]:
        return np.array([digest(fold(text).encode()) in self._digests for text in texts], np.bool_)

    def rows_to_keep(
        self, rows: pa.Table, *, folder: str, generation: str, source: str
    ) -> NDArray[np.bool_]:
        """Return which rows of an audit, rejects or dropped table stay.

        Args:
            rows: The rows.
            folder: audit, rejects or dropped.
            generation: The generation that has the table.
            source: The source whose table it is.
        """
        stay = ~np.isin(column(rows, "order"), self.orders(generation, source))
        if folder == "audit":
            return stay
        stay &= ~self._in_places(rows, source)
        if folder == "dropped":
            stay &= ~self._are_erased(rows["text"].to_pylist())
            stay &= pc.fill_null(pc.not_equal(rows["reason"], _NEAR_DUPLICATE), True).to_numpy()
        return stay

    def _in_places(self, rows: pa.Table, source: str) -> NDArray[np.bool_]:
        """Return which rows are of a record that an erased document was made from."""
        found = np.zeros(len(rows), np.bool_)
        places = self._places.get(source)
        if places and set(_PLACE) <= set(rows.column_names):
            positions = np.array([position for _, position in places], np.int64)
            near = np.flatnonzero(np.isin(rows["position"].to_numpy(), positions))
            pairs = zip(*(rows[name].take(near).to_pylist() for name in _PLACE), strict=True)
            found[near] = [pair in places for pair in pairs]
        return found

    def without(self, rows: pa.Table, *, kind: str, generation: str) -> pa.Table:
        """Return rows of a signature table without what goes.

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
        bare = pa.array(np.where(erased, np.uint64(BARE), order))
        index = rows.schema.get_field_index("order")
        return rows.set_column(index, rows.schema.field(index), bare)

    def accounting(self, generation: Generation) -> dict[str, Any]:
        """Return the accounting of a generation with the erased documents as such."""
        return {
            source: self._account(generation, source, account)
            for source, account in generation.accounting.items()
        }

    def _account(
        self, generation: Generation, source: str, account: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        orders = self.orders(generation.name, source)
        if not len(orders):
            return account
        changed = deepcopy(dict(account))
        changed["erased"] = changed.get("erased", 0) + len(orders)
        changed["kept"] -= len(orders)
        for entry in generation.audit:
            if entry.source == source:
                for row in _kept_rows(self.dataset.directory / entry.path, entry, orders):
                    _move(changed, row)
        return changed

    def clear_report(self) -> list[str]:
        """Take texts, and groups, out of the report; return a line for each change.

        The page is deleted: `pipelines.report` draws it again.
        """
        directory, changed = self.dataset.directory, []
        if size_if_there(directory / REPORT) >= 0:
            report = read_json(directory / REPORT)
            with shape_expected(directory / REPORT, "delete it, so that no text is left in it"):
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


def _kept_rows(path: AnyPath, entry: FileEntry, orders: np.ndarray) -> list[dict[str, Any]]:
    """Return group and bytes of the kept rows of an audit table with one of some orders."""
    with pq.ParquetFile(pa.py_buffer(whole_bytes(path, entry))) as file:
        present = set(file.schema_arrow.names)
        names = [name for name in ("order", "verdict", "group", "bytes") if name in present]
        table = file.read(names)
    rows = table.filter(pa.array(np.isin(column(table, "order"), orders))).to_pylist()
    return [row for row in rows if row["verdict"] == "kept"]


def _move(account: dict[str, Any], row: Mapping[str, Any]) -> None:
    """Count the text of an erased document no longer as kept."""
    num_bytes = row.get("bytes") or 0
    sums = account.get("bytes", {})
    if "kept" in sums:
        sums["kept"] -= num_bytes
        sums["erased"] = sums.get("erased", 0) + num_bytes
    groups, name = account.get("groups", {}), row.get("group")
    if kept := groups.get(name, {}).get("kept"):
        kept["rows"] -= 1
        kept["bytes"] -= num_bytes
        if not kept["rows"]:  # the name of a group may say whose text it was
            del groups[name]["kept"]
        if not groups[name]:
            del groups[name]
