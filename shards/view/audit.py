"""The fate of every record: audit, dropped and rejects tables, read a row group at a time.

Tables are sorted by order, so a row is found by the statistics of its row group. A search reads
only the columns that it compares, of row groups whose statistics leave room for a hit, and then all
columns of its hits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from shards.erasure import Erasure
from shards.errors import DamageError
from shards.manifest import Generation, TableEntry
from shards.reader import Dataset
from shards.storage.arrow import damage_told
from shards.storage.files import map_bytes, size
from shards.view.address import BadQuery
from shards.view.scan import Budget, Found

AUDIT, DROPPED, REJECTS = "audit", "dropped", "rejects"
VERDICTS = ("kept", "dropped", "quarantined")
PLACE = ("order", "path", "position", "ordinal")
"""Columns that say which record it is."""

_OF_REMOVED = (*PLACE, "verdict")
"""Columns that are shown of a document that was removed."""

_BATCH_ROWS = 65_536
_TEXT_ROWS = 256
"""Rows that are read at once of columns with whole texts."""

_REPEATED = ["path", "group", "verdict", "reason", "language"]
"""Columns with few different values."""

_PLAIN = frozenset({*PLACE, "length", "group", "verdict", "reason", "repaired", "language"})
"""Columns that are no metrics."""

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Table:
    """One of the tables about the records of a source in a generation."""

    number: int
    """Among all tables of its kind."""
    generation: Generation
    entry: TableEntry
    first: int
    """Rows of the tables before it."""


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which records are wanted; what is empty or None does not matter."""

    generation: str = ""
    source: str = ""
    verdict: str = ""
    reason: str = ""
    group: str = ""
    language: str = ""
    metric: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def equal(self) -> dict[str, str]:
        """What columns must be equal to."""
        names = ("verdict", "reason", "group", "language")
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    @property
    def columns(self) -> list[str]:
        """The columns that are compared."""
        return [*self.equal, *([self.metric] if self.metric else [])]

    @property
    def is_of_content(self) -> bool:
        """Whether columns are compared that a removed document does not show."""
        return not set(self.columns) <= set(_OF_REMOVED)


@dataclass(frozen=True, kw_only=True)
class Record:
    """A row of a table."""

    table: Table
    row: int
    values: Row
    is_removed: bool = False
    """Whether it is of a document that was removed: `values` are only its place and verdict."""

    @property
    def where(self) -> dict[str, object]:
        """The values of an address that name it."""
        return {"table": self.table.number, "row": self.row}


class Audit:
    """The tables about records of a dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._erasure = Erasure(dataset)
        self.tables = {kind: tuple(_tables(dataset, kind)) for kind in (AUDIT, DROPPED, REJECTS)}

    def _open(self, table: Table) -> pq.ParquetFile:
        """Map a table.

        Raises:
            DamageError: It is missing, or not the one that the manifest names.
        """
        path = self.dataset.directory / table.entry.path
        if (found := size(path)) != table.entry.bytes:
            raise DamageError(
                f"{path} has {found:,} bytes, the manifest says {table.entry.bytes:,}: it was "
                "truncated or replaced. Restore it from a copy, or build the dataset again."
            )
        with self._told(table):
            content = pa.py_buffer(map_bytes(path))
            footer = pq.read_metadata(pa.BufferReader(content))
            repeated = [name for name in _REPEATED if name in footer.schema.names]
            # The whole of a column is not read ahead: a text is looked at for a few of its rows.
            return pq.ParquetFile(
                content, metadata=footer, read_dictionary=repeated, pre_buffer=False
            )

    def _told(self, table: Table) -> Any:
        return damage_told(self.dataset.directory / table.entry.path, kind="a Parquet file")

    def metrics(self, source: str) -> list[str]:
        """Return the columns of the last table of a source, or of any, that are numbers."""
        tables = [each for each in self.tables[AUDIT] if source in ("", each.entry.source)]
        if not tables:
            return []
        with self._told(tables[-1]), self._open(tables[-1]) as file:
            schema = file.schema_arrow
        return [
            column.name
            for column in schema
            if column.name not in _PLAIN
            and (pa.types.is_floating(column.type) or pa.types.is_integer(column.type))
        ]

    def span(self, metric: str, source: str) -> tuple[float, float] | None:
        """Return the least and the largest value of a metric in one table of a source.

        None if its statistics do not say.
        """
        tables = [each for each in self.tables[AUDIT] if source in ("", each.entry.source)]
        with self._told(tables[-1]), self._open(tables[-1]) as file:
            number = file.schema_arrow.get_field_index(metric)
            groups = (file.metadata.row_group(group) for group in range(file.num_row_groups))
            found = [group.column(number).statistics for group in groups]
        known = [each for each in found if each is not None and each.has_min_max]
        if not known:
            return None
        return min(each.min for each in known), max(each.max for each in known)

    def search(self, wanted: Filter, *, start: int, most: int, budget: Budget) -> Found[Record]:
        """Return the records that are wanted, from a row on, counted over all audit tables.

        At least one row group that may have a hit is looked at, whatever the budget.

        Raises:
            DamageError: A table is damaged.
        """
        tables = self.tables[AUDIT]
        total = sum(table.entry.rows for table in tables)
        found: Found[Record] = Found(start=start, at=start, total=total)
        for table in tables:
            if table.first + table.entry.rows <= start:
                continue
            if _may_have(table, wanted):
                with self._told(table), self._open(table) as file:
                    self._search(file, table, wanted, found=found, most=most, budget=budget)
                if len(found.hits) == most or budget.is_spent:
                    return found
            found.at = table.first + table.entry.rows
        found.at = total
        return found

    def _search(  # a step of the one above
        self,
        file: pq.ParquetFile,
        table: Table,
        wanted: Filter,
        *,
        found: Found[Record],
        most: int,
        budget: Budget,
    ) -> None:
        """Add the hits of a table, until there are enough of them or the time is over."""
        if not set(wanted.columns) <= set(file.schema_arrow.names):
            found.at = table.first + table.entry.rows
            return
        for group, first in _groups(file):
            end = table.first + first + file.metadata.row_group(group).num_rows
            if end <= found.at:
                continue
            rows = []
            if _group_may_have(file, group, wanted):
                rows = _matching(file, group, wanted, after=found.at - table.first - first)
            if wanted.is_of_content:
                rows = self._spared(file, group, table, rows)
            chosen = rows[: most - len(found.hits)]
            values = _rows(file, group, chosen, _without_texts(file))
            found.hits += (
                self._record(table, first + row, each)
                for row, each in zip(chosen, values, strict=True)
            )
            enough = len(found.hits) == most
            found.at = table.first + first + chosen[-1] + 1 if enough else end
            if enough or budget.is_spent:
                return

    def record(self, kind: str, number: int, row: int) -> Record:
        """Return a row of a table.

        Raises:
            BadQuery: There is no such row.
            DamageError: The table is damaged.
        """
        if number >= len(self.tables[kind]):
            raise BadQuery(f"There is no {kind} table {number:,}.")
        table = self.tables[kind][number]
        with self._told(table), self._open(table) as file:
            for group, first in _groups(file):
                if first <= row < first + file.metadata.row_group(group).num_rows:
                    names = file.schema_arrow.names
                    (values,) = _rows(file, group, [row - first], names)
                    return self._record(table, row, values)
        raise BadQuery(f"There is no record {row:,} in this table: it has {table.entry.rows:,}.")

    def by_order(
        self, kind: str, order: int, *, generation: str, source: str = ""
    ) -> Iterator[Record]:
        """Yield the rows of a kind of table, in a generation, that have an order."""
        by_source: dict[str, list[Table]] = {}
        for table in self.tables[kind]:
            if table.generation.name == generation and source in ("", table.entry.source):
                by_source.setdefault(table.entry.source, []).append(table)
        for tables in by_source.values():
            # Audit file i of n holds the orders with (order * n) >> 64 == i.
            guess = tables[(order * len(tables)) >> 64]
            rest = [table for table in tables if table is not guess]
            hits = list(self._with_order(guess, order))
            if not hits and kind != AUDIT:
                hits = [hit for table in rest for hit in self._with_order(table, order)]
            yield from hits

    def _with_order(self, table: Table, order: int) -> Iterator[Record]:
        with self._told(table), self._open(table) as file:
            column = file.schema_arrow.get_field_index("order")
            for group, first in _groups(file):
                statistics = file.metadata.row_group(group).column(column).statistics
                if not _may_hold(statistics, order):
                    continue
                rows = _equal_rows(file, group, "order", order)
                values = _rows(file, group, rows, file.schema_arrow.names)
                for row, each in zip(rows, values, strict=True):
                    yield self._record(table, first + row, each)

    def _removed(self, table: Table) -> NDArray[np.uint64]:
        """Return the orders of removed documents whose rows a table may have."""
        if not self._erasure.num_documents:
            return np.zeros(0, np.uint64)
        return self._erasure.orders(table.generation.name, table.entry.source)

    def _record(self, table: Table, row: int, values: Row) -> Record:
        """Return a row; of a removed document only what its own page shows as well."""
        order = values.get("order")
        if order is None or not (self._removed(table) == np.uint64(order)).any():
            return Record(table=table, row=row, values=values)
        left = {name: values[name] for name in _OF_REMOVED if name in values}
        return Record(table=table, row=row, values=left, is_removed=True)

    def _spared(self, file: pq.ParquetFile, group: int, table: Table, rows: list[int]) -> list[int]:
        """Return those of some rows of a row group that are not of removed documents."""
        removed = self._removed(table)
        if not rows or not len(removed):
            return rows
        column = file.read_row_group(group, columns=["order"])["order"].take(pa.array(rows))
        gone = _flags(pc.is_in(column.combine_chunks(), value_set=pa.array(removed)))
        return [row for row, is_gone in zip(rows, gone, strict=True) if not is_gone]


def _tables(dataset: Dataset, kind: str) -> Iterator[Table]:
    number = first = 0
    for generation in dataset.manifest.generations:
        entries: Sequence[TableEntry] = getattr(generation, kind)
        for entry in entries:
            yield Table(number=number, generation=generation, entry=entry, first=first)
            number, first = number + 1, first + entry.rows


def _groups(file: pq.ParquetFile) -> Iterator[tuple[int, int]]:
    """Yield the row groups of a file, each with its first row."""
    first = 0
    for group in range(file.num_row_groups):
        yield group, first
        first += file.metadata.row_group(group).num_rows


def _may_have(table: Table, wanted: Filter) -> bool:
    """Return whether the account leaves room for a hit in a table: most tables need no look."""
    if wanted.generation not in ("", table.generation.name):
        return False
    if wanted.source not in ("", table.entry.source):
        return False
    account = table.generation.accounting.get(table.entry.source)
    if not isinstance(account, Mapping):
        return True
    if wanted.reason and not any(
        wanted.reason in account.get(verdict, {}) for verdict in ("dropped", "quarantined")
    ):
        return False
    return not wanted.verdict or bool(account.get(wanted.verdict, True))


def _group_may_have(file: pq.ParquetFile, group: int, wanted: Filter) -> bool:
    """Return whether the statistics of a row group leave room for a hit."""
    bounds: dict[str, tuple[Any, Any]] = {name: (v, v) for name, v in wanted.equal.items()}
    if wanted.metric:
        bounds[wanted.metric] = (wanted.least, wanted.most)
    for name, (least, most) in bounds.items():
        column = file.metadata.row_group(group).column(file.schema_arrow.get_field_index(name))
        statistics = column.statistics
        if statistics is None or not statistics.has_min_max:
            continue
        # Long texts are cut in statistics: then the largest is no bound.
        if least is not None and statistics.max < least and not isinstance(least, str):
            return False
        if most is not None and statistics.min > most:
            return False
    return True


def _matching(file: pq.ParquetFile, group: int, wanted: Filter, *, after: int) -> list[int]:
    """Return the rows of a row group that are wanted, from one on."""
    rows = file.metadata.row_group(group).num_rows
    if not wanted.columns:
        return list(range(max(after, 0), rows))
    found, first = [], 0
    for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=wanted.columns):
        mask = np.ones(len(batch), np.bool_)
        for name, value in wanted.equal.items():
            mask &= _equal(_checked(batch, name), value)
        if wanted.metric:
            mask &= _within(_checked(batch, wanted.metric), wanted)
        found.append(first + np.flatnonzero(mask))
        first += len(batch)
    hits = np.concatenate([np.zeros(0, np.int64), *found])
    chosen: list[int] = hits[hits >= after].tolist()
    return chosen


def _equal(column: pa.Array, value: str) -> NDArray[np.bool_]:
    """Return which values of a column are equal to one; few different ones are compared once."""
    if not pa.types.is_dictionary(column.type):
        return _flags(pc.equal(column, value))
    hits = _flags(pc.equal(column.dictionary, value))
    codes = column.indices.fill_null(len(hits)).to_numpy(zero_copy_only=False)
    chosen: NDArray[np.bool_] = np.append(hits, False)[codes]
    return chosen


def _within(values: pa.Array, wanted: Filter) -> NDArray[np.bool_]:
    mask = _flags(pc.is_valid(values))
    if wanted.least is not None:
        mask &= _flags(pc.greater_equal(values, wanted.least))
    if wanted.most is not None:
        mask &= _flags(pc.less_equal(values, wanted.most))
    return mask


def _checked(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = batch[name]
    column.validate(full=True)
    return column


def _flags(values: pa.Array) -> NDArray[np.bool_]:
    flags: NDArray[np.bool_] = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return flags.copy()


def _may_hold(statistics: pq.Statistics | None, order: int) -> bool:
    """Return whether the statistics of a row group leave room for an order."""
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.min <= order <= statistics.max)


def _equal_rows(file: pq.ParquetFile, group: int, name: str, value: int) -> list[int]:
    found, first = [], 0
    scalar = pa.scalar(value, file.schema_arrow.field(name).type)
    for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=[name]):
        hits = np.flatnonzero(_flags(pc.equal(_checked(batch, name), scalar)))
        found += (first + hits).tolist()
        first += len(batch)
    return found


def _without_texts(file: pq.ParquetFile) -> list[str]:
    return [name for name in file.schema_arrow.names if name not in ("text", "raw")]


def _rows(file: pq.ParquetFile, group: int, rows: Sequence[int], names: Sequence[str]) -> list[Row]:
    """Return some rows of a row group, sorted, as Python has them."""
    if not rows:
        return []
    wanted = np.array(rows, np.int64)
    has_texts = not {"text", "raw"}.isdisjoint(names)
    size_ = _TEXT_ROWS if has_texts else _BATCH_ROWS
    found, first = [], 0
    for batch in file.iter_batches(size_, row_groups=[group], columns=list(names)):
        inside = wanted[(wanted >= first) & (wanted < first + len(batch))] - first
        if len(inside):
            table = pa.Table.from_batches([batch]).take(pa.array(inside))
            table.validate(full=True)
            found += table.to_pylist()
        first += len(batch)
        if first > wanted[-1]:
            break
    return found
