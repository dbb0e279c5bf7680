"""Finds records in the audit, dropped and rejects tables, one row group at a time.

Arrow's filters skip the row groups whose statistics exclude a hit. In the remaining groups only the
compared columns are read; in groups with hits, all columns except texts are read next.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from numpy.typing import NDArray
from pyarrow.fs import LocalFileSystem

from shards.maintenance.erasure import Erasure
from shards.manifest import Generation, TableEntry
from shards.reader import Dataset
from shards.storage.arrow import check_parquet, reraise_as_damage
from shards.storage.files import check_size, file_size
from shards.view.query import BadQuery
from shards.view.scan import ScanResult, matching, search

AUDIT, DROPPED, REJECTS = "audit", "dropped", "rejects"
VERDICTS = ("kept", "dropped", "quarantined")
PLACE = ("order", "path", "position", "ordinal")
"""Columns that identify a record; only these are shown for a removed document."""

_PLAIN = frozenset({*PLACE, "length", "group", "verdict", "reason", "repaired", "language"})
"""Names of the columns that are not metrics."""

_TEXTS = ("text", "raw")
_OPEN_TABLES = 1024
_FORMAT = ds.ParquetFileFormat()


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditTable:
    """One of the tables about the records of a source in a generation."""

    generation: Generation
    entry: TableEntry
    first: int
    """The number of rows in the tables of the same kind that precede this table."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowGroup:
    """A part of a table."""

    table: AuditTable
    first: int
    """The number of rows that precede this group in all tables of the same kind."""
    rows: int
    fragment: Any
    """The pyarrow fragment that reads the group."""


@dataclass(frozen=True, kw_only=True)
class RecordFilter:
    """Conditions on records; those that are empty or None do not apply."""

    generation: str = ""
    source: str = ""
    verdict: str = ""
    reason: str = ""
    group: str = ""
    language: str = ""
    metric: str = ""
    least: float | None = None
    most: float | None = None
    orders: tuple[int, ...] | None = None
    """The orders of the documents to find, which may have been removed."""

    @property
    def equal(self) -> dict[str, str]:
        """The value that each compared column must have."""
        names = ("verdict", "reason", "group", "language")
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    @property
    def columns(self) -> set[str]:
        """The names of the columns that are compared."""
        return {*self.equal, self.metric} - {""}

    def expression(self) -> pc.Expression:
        """Return the filter as an Arrow expression."""
        wanted = pc.scalar(True)
        if self.orders:
            order = pc.field("order")
            least, most = (pa.scalar(end(self.orders), pa.uint64()) for end in (min, max))
            # Statistics contain the range of orders, so this condition excludes most row groups.
            wanted &= (order >= least) & (order <= most)
            wanted &= order.isin(pa.array(self.orders, pa.uint64()))
        for name, value in self.equal.items():
            wanted &= pc.field(name) == value
        if self.metric:
            metric = pc.field(self.metric)
            wanted &= metric.is_valid()
            wanted &= metric >= self.least if self.least is not None else pc.scalar(True)
            wanted &= metric <= self.most if self.most is not None else pc.scalar(True)
        return wanted


@dataclass(frozen=True, kw_only=True)
class AuditRecord:
    """A row of a table."""

    generation: Generation
    source: str
    row: int
    """The number of the row, counted over all tables of the same kind."""
    values: dict[str, Any]
    is_removed: bool
    """Whether the record's document was removed; if so, `values` has only the columns of PLACE."""


class Audit:
    """The tables about a dataset's records; searches never find records of removed documents."""

    def __init__(self, dataset: Dataset) -> None:
        self._directory = Path(str(dataset.directory))
        self._erasure = Erasure(dataset)
        self._row_groups = lru_cache(_OPEN_TABLES)(self._opened)
        self.tables = {kind: tuple(_tables(dataset, kind)) for kind in (AUDIT, DROPPED, REJECTS)}
        self.total = sum(table.entry.rows for table in self.tables[AUDIT])
        """The number of records of the dataset."""

    def _opened(self, table: AuditTable) -> list[RowGroup]:
        """Read the footer of a table and return its row groups.

        Raises:
            DamageError: The table is missing, or is not the one that the manifest names.
        """
        path = self._directory / table.entry.path
        check_size(path, file_size(path), expected=table.entry.bytes)
        groups, first = [], table.first
        with self._damage_explained(table):
            fragment = _FORMAT.make_fragment(str(path), LocalFileSystem())
            check_parquet(fragment.metadata)
            for part in fragment.split_by_row_group():
                rows = part.row_groups[0].num_rows
                groups.append(RowGroup(table=table, first=first, rows=rows, fragment=part))
                first += rows
        return groups

    def _damage_explained(self, table: AuditTable) -> AbstractContextManager[None]:
        return reraise_as_damage(self._directory / table.entry.path, kind="a Parquet file")

    def metrics(self, source: str) -> list[str]:
        """Return the numeric columns of the last table of a source, or of any source."""
        tables = [each for each in self.tables[AUDIT] if source in ("", each.entry.source)]
        groups = self._row_groups(tables[-1]) if tables else []
        return [
            column.name
            for column in (groups[0].fragment.physical_schema if groups else ())
            if column.name not in _PLAIN
            and (pa.types.is_floating(column.type) or pa.types.is_integer(column.type))
        ]

    def search(
        self, wanted: RecordFilter, *, start: int, limit: int, seconds: float
    ) -> ScanResult[AuditRecord]:
        """Return the records that match a filter, starting at a row counted over all audit tables.

        Raises:
            BadQuery: The row is after the last one.
            DamageError: A table is damaged.
        """
        if start > self.total:
            raise BadQuery(
                f"There is no record {start:,}: there are {self.total:,}, counted from 0."
            )
        blocks = (
            (group.first + group.rows, ((row, (group, row)) for row in rows if row >= start))
            for group in self._groups(self.tables[AUDIT], wanted, start=start)
            for rows, _ in (self._rows(group, wanted),)
        )
        found = search(blocks, start=start, total=self.total, limit=limit, seconds=seconds)
        return ScanResult(**{**vars(found), "hits": self._records(found.hits)})

    def sample(self, wanted: RecordFilter, *, seconds: float) -> tuple[NDArray[np.float64], int]:
        """Return a metric's values in records that match a filter, and the number of records read.

        The order of records is random, so the first table of each source and generation is a fair
        sample; it is read before the second tables.
        """
        seen: Counter[tuple[str, str]] = Counter()

        def turn(table: AuditTable) -> int:
            key = (table.generation.name, table.entry.source)
            seen[key] += 1
            return seen[key]

        blocks = (
            (0, [(0, (group, self._rows(group, wanted)[1][wanted.metric].to_numpy()))])
            for group in self._groups(sorted(self.tables[AUDIT], key=turn), wanted)
        )
        found = search(blocks, start=0, total=0, seconds=seconds)
        values = np.concatenate([np.zeros(0), *(each for _, each in found.hits)])
        return values.astype(np.float64), sum(group.rows for group, _ in found.hits)

    def _groups(
        self, tables: Sequence[AuditTable], wanted: RecordFilter, *, start: int = 0
    ) -> Iterator[RowGroup]:
        """Yield the row groups that end after a row and whose statistics allow a hit."""
        for table in tables:
            if (
                table.first + table.entry.rows > start
                and wanted.generation in ("", table.generation.name)
                and wanted.source in ("", table.entry.source)
            ):
                for group in self._row_groups(table):
                    has_columns = wanted.columns <= {*group.fragment.physical_schema.names}
                    if group.first + group.rows > start and has_columns:
                        with self._damage_explained(table):
                            may_have = group.fragment.subset(wanted.expression()).row_groups
                        if may_have:
                            yield group

    def _rows(self, group: RowGroup, wanted: RecordFilter) -> tuple[list[int], pa.Table]:
        """Return a group's matching rows, numbered over all tables, and the compared columns."""
        expression = wanted.expression()
        if not wanted.orders and len(removed := self._removed(group.table)):
            expression &= ~pc.field("order").isin(pa.array(removed))
        with self._damage_explained(group.table):
            names = sorted({"order", *wanted.columns})
            # With one thread, always the same column is reported if several are damaged.
            table = group.fragment.to_table(columns=names, use_threads=False)
            rows = matching(table, expression)
            return (rows + group.first).tolist(), table.take(pa.array(rows))

    def _removed(self, table: AuditTable) -> NDArray[np.uint64]:
        """Return the orders of removed documents that may have rows in a table."""
        return self._erasure.orders(table.generation.name, table.entry.source)

    def _records(
        self, places: Iterable[tuple[RowGroup, int]], *, with_texts: bool = False
    ) -> list[AuditRecord]:
        """Return the records in rows of row groups; for a removed document, only its place."""
        records = []
        for group, pairs in groupby(places, key=itemgetter(0)):
            rows = [row for _, row in pairs]
            removed = set(self._removed(group.table).tolist())
            names = group.fragment.physical_schema.names
            names = [name for name in names if with_texts or name not in _TEXTS]
            with self._damage_explained(group.table):
                wanted = pa.array(np.array(rows, np.int64) - group.first)
                table = group.fragment.take(wanted, columns=names, use_threads=False)
                found = table.to_pylist()
            for row, values in zip(rows, found, strict=True):
                is_removed = values.get("order") in removed
                shown = {name: values[name] for name in values if name in PLACE or not is_removed}
                records.append(
                    AuditRecord(
                        generation=group.table.generation,
                        source=group.table.entry.source,
                        row=row,
                        values=shown,
                        is_removed=is_removed,
                    )
                )
        return records

    def record(self, row: int) -> AuditRecord:
        """Return a row of the audit tables.

        Raises:
            BadQuery: There is no such row.
            DamageError: The table is damaged.
        """
        group = next(self._groups(self.tables[AUDIT], RecordFilter(), start=row), None)
        if group is None:
            raise BadQuery(f"There is no record {row:,}: there are {self.total:,}, counted from 0.")
        return self._records([(group, row)])[0]

    def by_order(
        self, kind: str, orders: Iterable[int], *, generation: str, source: str = ""
    ) -> list[AuditRecord]:
        """Return the rows of a kind of table, with texts, about the documents with these orders.

        Args:
            kind: AUDIT, DROPPED or REJECTS.
            orders: The orders of the documents.
            generation: The name of their generation.
            source: The source of the documents; "" stands for any source.
        """
        wanted = RecordFilter(generation=generation, source=source, orders=tuple(orders))
        groups = self._groups(self.tables[kind], wanted)
        rows = ((group, row) for group in groups for row in self._rows(group, wanted)[0])
        return list(self._records(rows, with_texts=True))


def _tables(dataset: Dataset, kind: str) -> Iterator[AuditTable]:
    first = 0
    for generation in dataset.manifest.generations:
        for entry in getattr(generation, kind):
            yield AuditTable(generation=generation, entry=entry, first=first)
            first += entry.rows
