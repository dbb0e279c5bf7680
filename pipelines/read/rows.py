"""Turns rows of a table into records, whose offset is the row's number and whose length is 1."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.read.input_format import REPLACE, InputFormat
from pipelines.read.json_object import Partial
from pipelines.read.record import RAW_BYTES, WHOLE_BYTES, Damage, Reason, Record
from pipelines.read.value import UNUSABLE, duration_as_text
from shards.commands.table import called
from shards.errors import UserError
from shards.storage.arrow import validate_offsets

BATCH_ROWS = 1000
_HAS_BYTES = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)
_NO_VALUE = (ValueError, OverflowError, LookupError)
"""The errors for values that Python cannot represent: invalid UTF-8, a date after the year 9999."""


@dataclass(frozen=True)
class TableRows:
    """Turns rows of a table into records; a row in which a needed value is too long is damage."""

    input_format: InputFormat

    def columns(self, names: Sequence[str]) -> list[str]:
        """Return the names of the columns that are read."""
        return [name for name in names if self.input_format.all_columns or self._needs(name)]

    def _needs(self, column: str) -> bool:
        return self.input_format.fields is None or column in self._needed

    @cached_property
    def _needed(self) -> frozenset[str]:
        """The columns that may contain the fields; the names of columns may contain dots."""
        return frozenset(
            name
            for field in self.input_format.fields or ()
            for name in (field, field.partition(".")[0])
        )

    def records(self, batch: pa.RecordBatch, first_row: int) -> Iterator[Record | Damage]:
        """Yield the rows of a batch as records or damage."""
        batch = self._with_texts(batch)
        too_long = self._too_long(batch)
        # Values that are too long do not become Python objects, which would be copies.
        values = None if too_long.any() else _values(batch)
        for index in range(len(batch)):
            if too_long[index]:
                yield Damage(first_row + index, 1, "too-long", self._text(batch, index, RAW_BYTES))
            elif values is None:
                yield self._row(batch, index, row=first_row + index)
            else:
                yield Record(first_row + index, 1, values[index], b"")

    def _row(self, batch: pa.RecordBatch, index: int, *, row: int) -> Record | Damage:
        fields: dict[str, Any] = {}
        reasons: dict[str, Reason] = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                (fields[name],) = _in_python(column[index : index + 1])
            except _NO_VALUE as error:
                is_text = isinstance(error, UnicodeDecodeError)
                if is_text and self.input_format.bad_utf8 == REPLACE and _is_string(column.type):
                    raw = column[index].as_buffer().to_pybytes()
                    fields[name] = raw.decode(errors="replace")
                    continue
                fields[name] = UNUSABLE
                reasons[name] = "bad-utf8" if is_text else "wrong-type"
        if not reasons:
            return Record(row, 1, fields, b"")
        reason, raw = next(iter(reasons.values())), self._text(batch, index)
        if reasons.keys() & self.input_format.text_fields:
            return Damage(row, 1, reason, raw)
        return Record(row, 1, Partial(fields.items(), reason), raw)

    def _with_texts(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with text and time columns converted to strings; UTF-8 is not checked."""
        present = self._present(batch)
        for index, field in enumerate(batch.schema):
            original = batch[index]
            column = _contiguous(original)
            if field.name in present:
                column = _as_string(column)
            if pa.types.is_temporal(field.type):
                column = _time_as_string(column)
            if column is not original:
                batch = batch.set_column(index, field.name, column)
        return batch

    def _too_long(self, batch: pa.RecordBatch) -> np.ndarray:
        too_long, most = np.zeros(len(batch), bool), self.input_format.max_record_bytes
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if self._needs(name) and (lengths := _byte_lengths(column)) is not None:
                too_long |= lengths.to_numpy(zero_copy_only=False) > most
        return too_long

    def _text(self, batch: pa.RecordBatch, index: int, most: int = WHOLE_BYTES) -> bytes:
        """Return the first bytes of a row's text as they are stored."""
        for name in self._present(batch):
            column = batch[name]
            if _is_string(column.type):
                buffer = column[index].as_buffer()
                return buffer[:most].to_pybytes() if buffer else b""
        return b""

    def _present(self, batch: pa.RecordBatch) -> list[str]:
        names = batch.schema.names
        return [name for name in self.input_format.text_fields if names.count(name) == 1]


def validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Check that the values of a batch are within its buffers, and return the batch.

    pyarrow trusts the offsets and indices of a file, and wrong ones can crash the process.

    Raises:
        pa.ArrowException: Some values are outside the buffers.
    """
    for column in batch.columns:
        validate_offsets(column)
    return batch


def check_columns(names: Sequence[str], path: str, *, text_fields: Sequence[str]) -> None:
    """Check that a table has one of the text columns, if any are given.

    Raises:
        UserError: The table has none of them; the message names its columns.
    """
    if text_fields and not set(text_fields) & set(names):
        wanted = " or ".join(map(repr, dict.fromkeys(text_fields)))
        raise UserError(
            f"The input {path} has no column {wanted}; it has {', '.join(map(repr, names))}. Leave "
            "the file out, use the command of its corpus, or name the column with the text: "
            f"{called('text')} --text-field NAME."
        )


def _is_string(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


def _contiguous(column: pa.Array) -> pa.Array:
    """Convert a column of string or binary views to a column of plain strings or bytes."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.binary_view()).cast(pa.large_binary()).view(pa.large_string())
    return column.cast(pa.large_binary()) if pa.types.is_binary_view(column.type) else column


def _as_string(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type):
        return column.view(pa.string())
    return column.view(pa.large_string()) if pa.types.is_large_binary(column.type) else column


def _time_as_string(column: pa.Array) -> pa.Array:
    """Return times as text: Python's times have no nanoseconds and no years after 9999."""
    if pa.types.is_duration(column.type):
        return _duration_as_string(column)
    try:
        column = column.cast(pa.string())
    except pa.ArrowInvalid:  # the time zone is unknown
        column = column.cast(pa.timestamp(column.type.unit, "UTC")).cast(pa.string())
    return pc.replace_substring_regex(column, r"\.0+(Z|[+-]\d+)?$", r"\1")


def _duration_as_string(column: pa.Array) -> pa.Array:
    unit = _NANOSECONDS[column.type.unit]
    counts = column.cast(pa.int64()).to_pylist()
    texts = [None if count is None else duration_as_text(count * unit) for count in counts]
    return pa.array(texts, pa.string())


_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def _byte_lengths(column: pa.Array) -> pa.Array | None:
    """Return the lengths of strings or bytes; None for values of other types."""
    if pa.types.is_dictionary(column.type):
        lengths = _byte_lengths(column.dictionary)
        return None if lengths is None else pc.fill_null(lengths.take(column.indices), 0)
    if any(is_type(column.type) for is_type in _HAS_BYTES):
        return pc.fill_null(pc.binary_length(column), 0)
    return None


def _values(batch: pa.RecordBatch) -> list[dict[str, Any]] | None:
    """Return the rows of a batch as dicts; None if a value cannot be represented in Python."""
    try:
        return _dicts(batch)
    except _NO_VALUE:
        return None


def _dicts(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    names = batch.schema.names
    columns = [_in_python(column) for column in batch.columns]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _in_python(column: pa.Array) -> list[Any]:
    """Return the values of a column; maps become objects."""
    values: list[Any] = column.to_pylist()
    if pa.types.is_map(column.type) and not pa.types.is_nested(column.type.key_type):
        return [None if pairs is None else dict(pairs) for pairs in values]
    return values
