"""Opens Arrow IPC files that may be damaged.

pyarrow trusts the metadata of a file: the number of rows in a buffer, the start of a string. One
flipped bit there can crash the process. So each part of a file is checked before its use:

    open_reader            its header, its end and its schema are valid
    check_buffers          its buffers are long enough for its rows; takes no time per row
    check_string_offsets   its strings are within the file; takes a comparison per row
    check_values           the values about to be read are valid

Wrong numbers do no harm here: code that calculates with them checks them itself.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from shards.commands.table import called
from shards.errors import DamageError
from shards.memory import is_out_of_memory
from shards.storage.disk import disk_error
from shards.storage.remote import AnyPath

_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)
_Values = TypeVar("_Values", pa.Array, pa.ChunkedArray, pa.Table)


@contextmanager
def reraise_as_damage(path: AnyPath, *, kind: str = "an Arrow file") -> Iterator[None]:
    """Convert an error of pyarrow or numpy about a damaged file to a DamageError with its path.

    Errors caused by a lack of memory are not converted.

    Raises:
        DamageError: the block failed because of the content of the file.
        UserError: the disk or the system could not read the file.
    """
    try:
        yield
    except DamageError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError) as error:
        if is_out_of_memory(error):
            raise
        if isinstance(error, OSError) and error.errno and isinstance(path, Path):
            raise disk_error(error, path) from error
        what = " ".join(str(error).split())
        raise DamageError(
            f"{path} is not {kind}, or is damaged ({what}): restore it from a copy, or build the "
            f"dataset again. {called('shards verify')} DATASET lists all damaged files."
        ) from error


def open_reader(content: NDArray[np.uint8], path: AnyPath) -> pa.RecordBatchFileReader:
    """Return a reader of the bytes of a file; `path` appears in error messages.

    Raises:
        DamageError: the bytes are not an Arrow file.
    """
    with reraise_as_damage(path):
        reader = pa.ipc.open_file(pa.py_buffer(content))
        names = reader.schema.names  # as text: a name may contain any bytes
        if len(set(names)) < len(names):
            raise ValueError("two columns have the same name")
    return reader


def check_buffers(rows: _Rows) -> _Rows:
    """Return rows of a file after checking that each column has the length that it states.

    Raises:
        pa.ArrowException: a column is too short, or has nulls that its schema excludes.
    """
    rows.validate()
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if not field.nullable and column.null_count:
            raise pa.ArrowInvalid(f"column {field.name!r} has nulls")
    return rows


def read_table(content: NDArray[np.uint8], path: AnyPath) -> pa.Table:
    """Return the memory-mapped rows of a file after checking the length of each column.

    Raises:
        DamageError: the rows cannot be used.
    """
    reader = open_reader(content, path)
    with reraise_as_damage(path):
        return check_buffers(reader.read_all())


def check_string_offsets(table: pa.Table, path: AnyPath) -> pa.Table:
    """Return a table of a file after checking that all its strings are within the file.

    The strings are not read, so they are not checked to be text.

    Raises:
        DamageError: some strings are outside the file.
    """
    with reraise_as_damage(path):
        for column in table.columns:
            for chunk in column.chunks:
                validate_offsets(chunk)
    return table


def validate_offsets(column: pa.Array) -> None:
    """Check that all values of a column are within its buffers, without decoding strings.

    Raises:
        pa.ArrowException: Some values are outside the buffers.
    """
    if pa.types.is_dictionary(column.type):
        validate_offsets(column.dictionary)
        pa.DictionaryArray.from_arrays(column.indices, column.dictionary)  # checks the indices
        return
    binary = _with_binary(column.type)
    (column if binary == column.type else column.view(binary)).validate(full=True)


def _with_binary(data_type: pa.DataType) -> pa.DataType:
    """Return a type with binary instead of strings, so that validation does not decode UTF-8."""
    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(_with_binary(field.type)) for field in data_type])
    if pa.types.is_list(data_type):
        return pa.list_(_with_binary(data_type.value_type))
    if pa.types.is_map(data_type):
        return pa.map_(_with_binary(data_type.key_type), _with_binary(data_type.item_type))
    return _BINARY.get(data_type, data_type)


_BINARY = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}


def check_parquet(metadata: pq.FileMetaData) -> None:
    """Check that the footer of a Parquet file does not contradict itself about columns.

    If a footer contradicts itself, reading the metadata of a column makes pyarrow end the process
    (an uncaught C++ exception). Reading a column would raise an exception, but none is read here.

    Raises:
        OSError: The footer contradicts itself.
    """
    table = pq.ParquetFile(_Unreadable(), metadata=metadata, buffer_size=1 << 20)
    for group in range(metadata.num_row_groups):
        with suppress(io.UnsupportedOperation):
            next(table.iter_batches(row_groups=[group], use_threads=False), None)


class _Unreadable(io.RawIOBase):
    """A file of maximum length that cannot be read."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, *_: int) -> int:
        return offset

    def tell(self) -> int:
        return 2**62

    def read(self, *_: int) -> bytes:
        raise io.UnsupportedOperation


def check_values(values: _Values, path: AnyPath) -> _Values:
    """Return values of a file after reading all their strings, indices and bits of nulls.

    Raises:
        DamageError: some values cannot be used.
    """
    with reraise_as_damage(path):
        values.validate(full=True)
    return values
