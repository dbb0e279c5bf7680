"""The fate of every record: audit, dropped and rejects tables, read a row group at a time.

Arrow's own filters leave out the row groups whose statistics have no room for a hit. Of the others
only the columns are read that are compared, and then all but the texts of those with hits.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray
from pyarrow.fs import LocalFileSystem

from shards.erasure import Erasure
from shards.errors import DamageError
from shards.manifest import Generation, TableEntry
from shards.reader import Dataset
from shards.storage.arrow import damage_told
from shards.storage.files import size
from shards.view.query import BadQuery
from shards.view.scan import Budget, Found

AUDIT, DROPPED, REJECTS = "audit", "dropped", "rejects"
VERDICTS = ("kept", "dropped", "quarantined")
PLACE = ("order", "path", "position", "ordinal")
"""Columns that say which record it is, and all that is shown of a removed document."""

_PLAIN = frozenset({*PLACE, "length", "group", "verdict", "reason", "repaired", "language"})
"""Columns that are no metrics."""

_ROW = "number of the row"
_OPEN_TABLES = 1024
_FORMAT = ds.ParquetFileFormat()


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """One of the tables about the records of a source in a generation."""

    generation: Generation
    entry: TableEntry
    first: int
    """Rows of the tables of its kind before it."""

    @property
    def end(self) -> int:
        """Rows up to its end."""
        return self.first + self.entry.rows


@dataclass(frozen=True, kw_only=True)
class RowGroup:
    """A part of a table."""

    table: Table
    first: int
    """Rows of all tables of its kind before it."""
    rows: int
    fragment: Any
    """The pyarrow fragment that reads it."""

    @property
    def names(self) -> list[str]:
        """The columns without those of whole texts."""
        names = self.fragment.physical_schema.names
        return [name for name in names if name not in ("text", "raw")]


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
    order: int | None = None
    """The order of a document, which may have been removed."""

    @property
    def equal(self) -> dict[str, str]:
        """What columns must be equal to."""
        names = ("verdict", "reason", "group", "language")
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    @property
    def columns(self) -> list[str]:
        """The columns that are compared."""
        return [*self.equal, *([self.metric] if self.metric else [])]

    def expression(self) -> pc.Expression:
        """Return it as Arrow takes it."""
        wanted = pc.scalar(True)
        if self.order is not None:
            wanted &= pc.field("order") == pa.scalar(self.order, pa.uint64())
        for name, value in self.equal.items():
            wanted &= pc.field(name) == value
        if self.metric:
            metric = pc.field(self.metric)
            wanted &= metric.is_valid()
            wanted &= metric >= self.least if self.least is not None else pc.scalar(True)
            wanted &= metric <= self.most if self.most is not None else pc.scalar(True)
        return wanted


@dataclass(frozen=True, kw_only=True)
class Record:
    """A row of a table."""

    table: Table
    row: int
    """Counted over all tables of its kind."""
    values: dict[str, Any]
    is_removed: bool = False
    """Whether the document made from it was removed: `values` are only its place."""


class Audit:
    """The tables about records of a dataset; records of removed documents are found by nobody."""

    def __init__(self, dataset: Dataset) -> None:
        self._directory = Path(str(dataset.directory))
        self._erasure = Erasure(dataset)
        self._row_groups = lru_cache(_OPEN_TABLES)(self._opened)
        self.tables = {kind: tuple(_tables(dataset, kind)) for kind in (AUDIT, DROPPED, REJECTS)}

    def _opened(self, table: Table) -> list[RowGroup]:
        """Read the footer of a table.

        Raises:
            DamageError: It is missing, or not the one that the manifest names.
        """
        path = self._directory / table.entry.path
        if (found := size(path)) != table.entry.bytes:
            raise DamageError(
                f"{path} has {found:,} bytes, the manifest says {table.entry.bytes:,}: it was "
                "truncated or replaced. Restore it from a copy, or build the dataset again."
            )
        with self._damage_explained(table):
            parts = _FORMAT.make_fragment(str(path), LocalFileSystem()).split_by_row_group()
            rows = [part.row_groups[0].num_rows for part in parts]
        firsts = table.first + np.cumsum([0, *rows])
        return [
            RowGroup(table=table, first=int(first), rows=number, fragment=part)
            for first, number, part in zip(firsts[:-1], rows, parts, strict=True)
        ]

    def _damage_explained(self, table: Table) -> AbstractContextManager[None]:
        return damage_told(self._directory / table.entry.path, kind="a Parquet file")

    def metrics(self, source: str) -> list[str]:
        """Return the columns of the last table of a source, or of any, that are numbers."""
        tables = [each for each in self.tables[AUDIT] if source in ("", each.entry.source)]
        groups = self._row_groups(tables[-1]) if tables else []
        return [
            column.name
            for column in (groups[0].fragment.physical_schema if groups else ())
            if column.name not in _PLAIN
            and (pa.types.is_floating(column.type) or pa.types.is_integer(column.type))
        ]

    def search(self, wanted: Filter, *, start: int, most: int, budget: Budget) -> Found[Record]:
        """Return the records that are wanted, from a row on, counted over all audit tables.

        At least one row group that may have a hit is looked at, whatever the budget.

        Raises:
            DamageError: A table is damaged.
        """
        tables = self.tables[AUDIT]
        total = sum(table.entry.rows for table in tables)
        found: Found[Record] = Found(start=start, at=start, total=total)
        for group in self._groups(tables, wanted, start=start):
            rows = self._rows(group, wanted)
            rows = rows[rows >= start][: most - len(found.hits)]
            found.hits += self._records(group, rows, group.names)
            enough = len(found.hits) == most
            found.at = int(rows[-1]) + 1 if enough else group.first + group.rows
            if enough or budget.is_spent:
                return found
        found.at = total
        return found

    def sample(self, wanted: Filter, *, budget: Budget) -> tuple[NDArray[np.float64], int]:
        """Return values of a metric in records that are wanted, and how many records were read.

        The order of records is random, so the first table of each source and generation is a fair
        sample of it; the second ones follow.
        """
        ranks: Counter[tuple[str, str]] = Counter()
        ranked = []
        for table in self.tables[AUDIT]:
            key = (table.generation.name, table.entry.source)
            ranked.append((ranks[key], table))
            ranks[key] += 1
        tables = [table for _, table in sorted(ranked, key=lambda each: each[0])]
        values, num_read = [np.zeros(0)], 0
        for group in self._groups(tables, wanted):
            rows = pa.array(self._rows(group, wanted) - group.first)
            with self._damage_explained(group.table):
                column = group.fragment.to_table(columns=[wanted.metric], use_threads=False)[
                    wanted.metric
                ]
                values.append(column.take(rows).to_numpy().astype(np.float64))
            num_read += group.rows
            if budget.is_spent:
                break
        return np.concatenate(values), num_read

    def _groups(
        self, tables: Sequence[Table], wanted: Filter, *, start: int = 0
    ) -> Iterator[RowGroup]:
        """Yield the row groups that end behind a row and may have a hit, by their statistics."""
        expression = wanted.expression()
        for table in tables:
            if (
                table.end > start
                and wanted.generation in ("", table.generation.name)
                and wanted.source in ("", table.entry.source)
            ):
                for group in self._row_groups(table):
                    if group.first + group.rows > start and set(wanted.columns) <= set(group.names):
                        with self._damage_explained(table):
                            may_have = group.fragment.subset(expression).row_groups
                        if may_have:
                            yield group

    def _rows(self, group: RowGroup, wanted: Filter) -> NDArray[np.int64]:
        """Return the rows of a row group that are wanted, counted over all tables."""
        expression = wanted.expression()
        if wanted.order is None and len(removed := self._removed(group.table)):
            expression &= ~pc.field("order").isin(pa.array(removed))
        with self._damage_explained(group.table):
            names = sorted({"order", *wanted.columns})
            # One thread: of several damaged columns the same is told each time.
            table = group.fragment.to_table(columns=names, use_threads=False)
            numbers = pa.array(np.arange(group.first, group.first + group.rows))
            table = table.append_column(_ROW, numbers)
            return np.asarray(table.filter(expression)[_ROW].to_numpy())

    def _records(self, group: RowGroup, rows: NDArray[np.int64], names: list[str]) -> list[Record]:
        """Return rows of a row group; of a removed document only where it is from."""
        if not len(rows):
            return []
        with self._damage_explained(group.table):
            table = group.fragment.take(
                pa.array(rows - group.first), columns=names, use_threads=False
            )
            values = table.to_pylist()
        removed = set(self._removed(group.table).tolist())
        return [
            Record(
                table=group.table,
                row=row,
                values={name: each[name] for name in each if name in PLACE or not is_removed},
                is_removed=is_removed,
            )
            for row, each in zip(rows.tolist(), values, strict=True)
            for is_removed in (each.get("order") in removed,)
        ]

    def _removed(self, table: Table) -> NDArray[np.uint64]:
        """Return the orders of removed documents whose rows a table may have."""
        return self._erasure.orders(table.generation.name, table.entry.source)

    def record(self, row: int) -> Record:
        """Return a row of the audit tables.

        Raises:
            BadQuery: There is no such row.
            DamageError: The table is damaged.
        """
        for table in self.tables[AUDIT]:
            if table.first <= row < table.end:
                for group in self._row_groups(table):
                    if group.first <= row < group.first + group.rows:
                        return self._records(group, np.array([row]), group.names)[0]
        total = sum(table.entry.rows for table in self.tables[AUDIT])
        raise BadQuery(f"There is no record {row:,}: there are {total:,}, counted from 0.")

    def by_order(
        self, kind: str, order: int, *, generation: str, source: str = ""
    ) -> Iterator[Record]:
        """Yield the rows of a kind of table, in a generation, that have an order; with texts."""
        wanted = Filter(generation=generation, source=source, order=order)
        for group in self._groups(self.tables[kind], wanted):
            names = group.fragment.physical_schema.names
            yield from self._records(group, self._rows(group, wanted), names)


def _tables(dataset: Dataset, kind: str) -> Iterator[Table]:
    first = 0
    for generation in dataset.manifest.generations:
        for entry in getattr(generation, kind):
            yield Table(generation=generation, entry=entry, first=first)
            first += entry.rows
