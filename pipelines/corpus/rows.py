"""Converts batches to rows of Beam with a schema and back, for custom transforms, SQL and YAML.

    batches ─▶ ToRows ─▶ beam.Row(text=…, language=…, url=…) ─▶ FromRows ─▶ batches

A row that keeps the identity columns remains the same document. FromRows gives any other row an
identity that is a hash of the row, so the identity does not depend on where or when the row is
made.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from types import MappingProxyType, UnionType
from typing import Any, Optional, Union, get_args, get_origin

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.batcher import BATCH_BYTES, BATCH_RECORDS, document_hashes
from pipelines.execute import beam
from pipelines.execute.beam import PCollection
from pipelines.read.files import NAME as SOURCE_NAME
from pipelines.segments.rows import (
    CATEGORICAL,
    CLEAN,
    DOCUMENT_SCHEMA,
    PATH,
    RAW_HEAD,
    REASON,
    ROWS,
    SOURCE,
    constant_column,
)
from pipelines.segments.unknown import UNKNOWN
from shards.errors import UserError

IDENTITY = (SOURCE.name, PATH.name, "position", "length", "ordinal")
"""The columns that identify the document of a row."""

_PLACES = ("position", "length", "ordinal")

_TAKEN = frozenset(
    {
        "order",
        "holdout",
        "tokens",
        "prompt_tokens",
        UNKNOWN,
        "offset",
        "start",
        "verdict",
        RAW_HEAD.name,
    }
    | {"hash_high", "hash_low", "signature", "unsure", CLEAN.name}
)
"""The names that fields of rows cannot have."""

_KINDS: Mapping[type, pa.DataType] = MappingProxyType(
    {str: pa.large_string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
)
_TYPES: Mapping[str, tuple[type, pa.DataType]] = MappingProxyType(
    {
        **{name: (str, CATEGORICAL) for name in (SOURCE.name, PATH.name, REASON.name, "language")},
        **{
            name: (int, DOCUMENT_SCHEMA.field(name).type)
            for name in ("position", "length", "ordinal")
        },
        "bytes": (int, pa.int64()),
        **{name: (str, pa.large_string()) for name in ("text", "prompt", "group")},
        "score": (float, pa.float32()),
        "repaired": (bool, pa.bool_()),
    }
)
"""For each column that this package makes, its type in a row and its type in a batch."""

_USUAL = (*IDENTITY, "bytes", "group", "prompt", "text")


class ToRows(beam.PTransform[PCollection[pa.RecordBatch], PCollection[Any]]):
    """Makes a row of each document, with identity, group, prompt, text and the named columns."""

    def __init__(self, *columns: str, **types: type) -> None:
        """Create the transform.

        Args:
            columns: Further columns that steps add ("language", "score", "reason") or that contain
                text.
            types: Further columns with their types, as in year=int.

        Raises:
            UserError: A row cannot have a column of this type.
        """
        super().__init__()
        for name, kind in types.items():
            if kind not in _KINDS:
                raise UserError(
                    f"ToRows({name}={kind!r}): a column of a row is a str, int, float or bool"
                )
        given = {name: _TYPES[name][0] if name in _TYPES else str for name in columns}
        self._fields = {**{name: _TYPES[name][0] for name in _USUAL}, **given, **types}

    def expand(self, batches: PCollection[pa.RecordBatch]) -> PCollection[Any]:
        """Return the rows of the batches."""
        # A value is null if the document did not reach a step or its corpus gives no value. Beam
        # would turn `str | None` into a field that engines in Java cannot read.
        fields: list[tuple[str, Any]] = [
            (name, kind if name in _USUAL else Optional[kind])  # noqa: UP045 - see above
            for name, kind in self._fields.items()
        ]
        row_type = beam.RowTypeConstraint.from_fields(fields)
        to_rows = beam.FlatMap(_rows_of, names=[*self._fields]).with_output_types(row_type)
        rows: PCollection[Any] = batches | "To rows" >> to_rows
        return rows


def _rows_of(batch: pa.RecordBatch, *, names: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of a batch."""
    missing = [name for name in names if name not in batch.schema.names]
    if missing:
        raise UserError(
            f"ToRows: a batch has no column {missing[0]!r}; it has {', '.join(batch.schema.names)}"
        )
    for row in batch.select(names).to_pylist():
        yield beam.Row(**row)


class FromRows(beam.PTransform[PCollection[Any], PCollection[pa.RecordBatch]]):
    """Makes batches from rows with a schema and a field `text`; all fields become columns.

    Rows with all identity columns keep their identity. The identity of any other row is a hash of
    the fields in `id` or, if `id` is empty, of the whole row.
    """

    def __init__(
        self,
        *,
        source: str = ROWS,
        id: str | Sequence[str] = (),
        group: str = "",
        seed: int = 0,
    ) -> None:
        """Create the transform.

        Args:
            source: The source of rows that do not name a source; each source has separate shards.
            id: The field or fields that identify a row, such as "url". If none is given, rows that
                are equal have the same identity.
            group: The field whose values divide the account into groups.
            seed: The seed of order and validation, as for ReadCorpus.
        """
        super().__init__()
        _check_sources([source])
        ids = (id,) if isinstance(id, str) else tuple(id)
        self._batcher = RowBatcher(source=source, id=ids, group=group, seed=seed)

    def expand(self, rows: PCollection[Any]) -> PCollection[pa.RecordBatch]:
        """Return the batches of the rows.

        Raises:
            UserError: The rows have no schema or no text, or the type of a field is not supported.
        """
        types = _types_of(rows.element_type)
        batcher = replace(self._batcher, types=types)
        for name in (*batcher.id, *([batcher.group] if batcher.group else [])):
            if name not in types:
                raise UserError(
                    f"FromRows: rows have no field {name!r}; they have {', '.join(types)}"
                )
        grouping = beam.BatchElements(
            BATCH_BYTES, BATCH_BYTES, element_size_fn=_size, record_metrics=False
        )
        batches: PCollection[pa.RecordBatch] = (
            rows
            | "Group" >> grouping
            | "From rows" >> beam.FlatMap(batcher.batches).with_output_types(pa.RecordBatch)
        )
        return batches


def _size(row: Any) -> int:
    """Return the size of a row, chosen so that a batch has at most BATCH_RECORDS rows."""
    return max(len(row.text or ""), BATCH_BYTES // BATCH_RECORDS)


def _types_of(element: Any) -> dict[str, pa.DataType]:
    """Return the types of the columns for the element type of a collection of rows."""
    row_type = beam.RowTypeConstraint.from_user_type(element)
    if row_type is None and isinstance(element, beam.RowTypeConstraint):
        row_type = element
    if row_type is None:
        raise UserError(
            f"FromRows needs rows with a schema, not elements of {element}: return "
            "beam.Row(text=…, url=…) from a beam.Map, or declare .with_output_types(A_NAMED_TUPLE)"
        )
    types = {}
    for name, kind in row_type._fields:
        plain = _plain(kind)
        if plain is None:
            raise UserError(
                f"FromRows: the type of the field {name!r} is {kind}, but a column is of type str, "
                "int, float or bool. Leave the field out, or convert it to text"
            )
        types[name] = _TYPES[name][1] if name in _TYPES else _KINDS[plain]
    _check_names(types)
    if "text" not in types:
        raise UserError(f"FromRows: rows have no field 'text'; they have {', '.join(types)}")
    return types


def _check_names(types: Mapping[str, pa.DataType]) -> None:
    if taken := sorted(_TAKEN & {*types}):
        raise UserError(
            f"FromRows: a field cannot be called {taken[0]!r}, which is the name of a column that "
            f"batches get elsewhere: choose another name, as in from_{taken[0]}"
        )
    places = [name for name in _PLACES if name in types]
    lacking = [name for name in IDENTITY if name not in types]
    if places and lacking:
        raise UserError(
            f"FromRows: rows have {', '.join(places)} but not {', '.join(lacking)}: keep all "
            "identity fields that ToRows makes, or only source and path. Rename a field that has "
            "another meaning"
        )


def _plain(kind: Any) -> type | None:
    """Return str, int, float or bool for the type of a field, nullable or not; else None."""
    options = [option for option in _union(kind) if option is not type(None)]
    if len(options) != 1:
        return None
    names = {"str": str, "bool": bool}
    (option,) = options
    name = getattr(option, "__name__", "")
    return names.get(name) or (
        int if name.startswith("int") else float if name.startswith("float") else None
    )


def _union(kind: Any) -> Sequence[Any]:
    """Return the members of a union type of Python or Beam, or the type itself."""
    if get_origin(kind) in (Union, UnionType):
        return get_args(kind)
    return tuple(getattr(kind, "union_types", (kind,)))


@dataclass(frozen=True, kw_only=True)
class RowBatcher:
    """Makes batches of rows; which rows share a batch does not affect the documents."""

    source: str
    """The source of rows that do not name a source."""
    id: tuple[str, ...]
    """The fields that identify a row; if this is empty, all fields do."""
    group: str
    """The field whose values divide the account into groups; "" means the column group, if there is
    one."""
    seed: int
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    """The types of the columns, by name."""

    def batches(self, rows: Sequence[Any]) -> list[pa.RecordBatch]:
        """Return a list with one batch of the rows, or an empty list if there are no rows."""
        values = [tuple(getattr(row, name) for name in self.types) for row in rows]
        return [self._batch(values)] if values else []

    def _batch(self, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        values = dict(zip(self.types, zip(*rows, strict=True), strict=True))
        for name in ("text", *IDENTITY):
            if None in values.get(name, ()):
                raise UserError(f"FromRows: a row's {name} is null: remove such rows first")
        columns = {name: _column(name, values[name], kind) for name, kind in self.types.items()}
        if not {*IDENTITY} <= {*self.types}:
            columns = {**self._identity(columns, len(rows)), **columns}
        _check_sources(columns[SOURCE.name].unique().to_pylist())
        columns |= self._hashes(columns)
        columns = _complete(columns, self.group, len(rows))
        rest = [name for name in columns if name not in DOCUMENT_SCHEMA.names]
        return pa.RecordBatch.from_pydict(
            {name: columns[name] for name in (*DOCUMENT_SCHEMA.names, *rest)}
        )

    def _identity(self, columns: Mapping[str, Any], num: int) -> dict[str, Any]:
        # The columns have exact types, while engines change values on the way, such as 1 to 1.0.
        chosen = [columns[name].to_pylist() for name in self.id or self.types]
        positions = [_position(values) for values in zip(*chosen, strict=True)]
        return {
            SOURCE.name: constant_column(self.source, num),
            PATH.name: constant_column(ROWS, num),
            "position": pa.array(positions, pa.int64()),
            "length": pa.repeat(pa.scalar(1, pa.int64()), num),
            "ordinal": pa.repeat(pa.scalar(0, pa.int32()), num),
        }

    def _hashes(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the columns order and holdout."""
        named = zip(*(columns[name].to_pylist() for name in (SOURCE.name, PATH.name)), strict=True)
        numbers: dict[tuple[str, str], int] = {}
        files = np.array([numbers.setdefault(name, len(numbers)) for name in named])
        positions, ordinals = (columns[name].to_numpy() for name in ("position", "ordinal"))
        order, holdout = document_hashes(
            [*numbers], files, positions=positions, ordinals=ordinals, seed=self.seed
        )
        return {"order": pa.array(order), "holdout": pa.array(holdout)}


def _column(name: str, values: Sequence[Any], kind: pa.DataType) -> Any:
    """Return a field of rows as a column."""
    if pa.types.is_integer(kind):  # Arrow would round fractions down
        cut = [value for value in values if isinstance(value, float) and value % 1]
        if cut:
            raise UserError(
                f"FromRows: a row's {name} is {cut[0]!r}, but the type of the field is int"
            )
    try:
        column = pa.array(values, _built(kind)).cast(kind)
    except (pa.ArrowException, UnicodeEncodeError, TypeError) as error:
        raise UserError(
            f"FromRows: a row's {name} is not a {kind}: {' '.join(str(error).split())[:200]}"
        ) from error
    if name in ("text", "prompt") and any("\0" in value for value in values if value):
        raise UserError(f"FromRows: a row's {name} has a NUL character: remove such rows first")
    return column


def _check_sources(names: Sequence[str]) -> None:
    for name in names:
        if not SOURCE_NAME.fullmatch(name) or name in (".", ".."):
            raise UserError(
                f"FromRows: {name!r} cannot be the name of a source, which is the name of a "
                "folder: use letters, digits and ._-; rename a field that has another meaning"
            )


def _built(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if kind == CATEGORICAL else kind


def _position(values: Sequence[Any]) -> int:
    """Return a position for a row: 63 bits of a hash of its values."""
    digest = blake2b(json.dumps(values).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def _complete(columns: Mapping[str, Any], group: str, num: int) -> dict[str, Any]:
    """Add the columns of DOCUMENT_SCHEMA that rows may leave out, and return all columns."""
    empty = pa.repeat(pa.scalar("", pa.large_string()), num)
    prompt = pc.fill_null(columns.get("prompt", empty), "")
    by = columns[group].cast(pa.large_string()) if group else columns.get("group", empty)
    size = pc.add(pc.binary_length(columns["text"]), pc.binary_length(prompt)).cast(pa.int64())
    # A document from ReadCorpus keeps its number of bytes, which the account counts.
    filled = {"prompt": prompt, "group": pc.fill_null(by, ""), "bytes": columns.get("bytes", size)}
    return {**columns, **filled}
