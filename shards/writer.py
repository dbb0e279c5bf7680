"""Writes files of a dataset: the three files of a shard, and tables named by their content."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shards.format import ARROW, BIN, IDX, REQUIRED, Tokens, index_bytes, shard_file
from shards.manifest import ShardEntry, TableEntry
from shards.storage.files import Handle, atomic_write, crc32c_of
from shards.storage.remote import AnyPath, relative


def write_shard(
    stem: AnyPath,
    documents: pa.Table,
    *,
    directory: AnyPath,
    tokens: Iterable[Tokens],
    dtype: np.dtype[Any],
) -> ShardEntry:
    """Write the three files of a shard, each whole or not at all, and return the shard's entry.

    Args:
        stem: path of the files without `.bin`, `.idx`, `.arrow`; inside `directory`.
        documents: a row per document, in order, with all columns of `REQUIRED` except `offset`,
            which is computed; further columns are kept.
        directory: the dataset's folder.
        tokens: one-dimensional chunks of the documents' tokens, in order; chunks need not end
            where documents do.
        dtype: the type of every chunk.

    Raises:
        ValueError: the table lacks a column, or its `tokens` do not add up to the chunks' size.
    """
    lengths = _required(documents, "tokens").to_numpy()
    batch = _with_offsets(documents, lengths)
    num_tokens = int(lengths.sum(dtype=np.int64))
    with atomic_write(shard_file(stem, BIN)) as bin_:
        _write_tokens(bin_, tokens, dtype=dtype, num_tokens=num_tokens)
    with atomic_write(shard_file(stem, IDX)) as index:
        index.write(index_bytes(lengths, dtype))
    with (
        atomic_write(shard_file(stem, ARROW)) as arrow,
        pa.ipc.new_file(arrow, batch.schema) as writer,
    ):
        writer.write_batch(batch)
    return ShardEntry(
        path=relative(stem, directory),
        documents=len(documents),
        tokens=num_tokens,
        files={BIN: bin_.entry, IDX: index.entry, ARROW: arrow.entry},
    )


def write_named(stem: AnyPath, table: pa.Table, *, directory: AnyPath) -> TableEntry:
    """Write a table as one batch to STEM-<crc32c>.arrow below `directory`; return its entry."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    content = sink.getvalue()
    path = stem.with_name(f"{stem.name}-{crc32c_of(content):08x}.arrow")
    with atomic_write(path) as handle:
        handle.write(content)
    return TableEntry(path=relative(path, directory), rows=len(table), **vars(handle.entry))


def _write_tokens(
    handle: Handle, tokens: Iterable[Tokens], *, dtype: np.dtype[Any], num_tokens: int
) -> None:
    for chunk in tokens:
        if chunk.dtype != dtype or chunk.ndim != 1:
            raise ValueError(f"a chunk of {chunk.ndim}-d {chunk.dtype} tokens, not 1-d {dtype}")
        handle.write(np.ascontiguousarray(chunk))
    if (written := handle.tell() // dtype.itemsize) != num_tokens:
        raise ValueError(f"{written} tokens were given, the documents have {num_tokens}")


def _required(documents: pa.Table, name: str) -> pa.ChunkedArray:
    required_type = REQUIRED.field(name).type
    if name not in documents.column_names or documents[name].type != required_type:
        raise ValueError(f"documents need a column {name!r} of {required_type}: {documents.schema}")
    if documents[name].null_count:
        raise ValueError(f"documents have nulls in column {name!r}")
    return documents[name]


def _with_offsets(documents: pa.Table, lengths: Tokens) -> pa.RecordBatch:
    """Return the documents in their final form: required columns first, all in one batch."""
    offsets = np.cumsum(lengths, dtype=np.int64) - lengths
    required = [_required(documents, name) for name in REQUIRED.names if name != "offset"]
    extra = [name for name in documents.column_names if name not in REQUIRED.names]
    columns = [pa.array(offsets), *required, *(documents[name] for name in extra)]
    arrays = [_canonical(column) for column in columns]
    types = [array.type for array in arrays[len(REQUIRED) :]]
    fields = [pa.field(name, type_) for name, type_ in zip(extra, types, strict=True)]
    return pa.record_batch(arrays, schema=pa.schema([*REQUIRED, *fields]))


def _canonical(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array whose bytes depend only on its values."""
    if pa.types.is_dictionary(column.type):
        # The order of a dictionary depends on how the rows were gathered: encode it again.
        values = _canonical(column.cast(column.type.value_type))
        return pc.dictionary_encode(values)
    if pa.types.is_string(column.type):
        # Strings have 32-bit offsets: two gigabytes of text would split the batch.
        column = column.cast(pa.large_string())
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
