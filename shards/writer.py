"""Writes one shard: tokens, index, documents."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shards.format import ARROW, BIN, IDX, REQUIRED, Tokens, index_bytes, shard_file
from shards.manifest import ShardEntry
from shards.storage.files import Handle, atomic_write
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
        documents: a row a document, in order, with the columns of `REQUIRED` but `offset`, which
            is computed here; further columns are kept.
        directory: the dataset's folder.
        tokens: one-dimensional chunks of the documents' tokens, in order; a chunk need not end
            where a document does.
        dtype: of every chunk.

    Raises:
        ValueError: the table lacks a column, or its `tokens` do not add up to those given.
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


def _write_tokens(
    handle: Handle, tokens: Iterable[Tokens], *, dtype: np.dtype[Any], num_tokens: int
) -> None:
    for chunk in tokens:
        if chunk.dtype != dtype or chunk.ndim != 1:
            raise ValueError(f"a chunk of {chunk.ndim}-d {chunk.dtype} tokens, not 1-d {dtype}")
        handle.write(np.ascontiguousarray(chunk))
    if (given := handle.tell() // dtype.itemsize) != num_tokens:
        raise ValueError(f"{given} tokens were given, the documents have {num_tokens}")


def _required(documents: pa.Table, name: str) -> pa.ChunkedArray:
    kind = REQUIRED.field(name).type
    if name not in documents.column_names or documents[name].type != kind:
        raise ValueError(f"documents need a column {name!r} of {kind}: {documents.schema}")
    if documents[name].null_count:
        raise ValueError(f"documents have no value in column {name!r} in some rows")
    return documents[name]


def _with_offsets(documents: pa.Table, lengths: Tokens) -> pa.RecordBatch:
    """Return the documents as they go to disk: the required columns first, all in one batch."""
    offsets = np.cumsum(lengths, dtype=np.int64) - lengths
    required = [_required(documents, name) for name in REQUIRED.names if name != "offset"]
    extra = [name for name in documents.column_names if name not in REQUIRED.names]
    columns = [pa.array(offsets), *required, *(documents[name] for name in extra)]
    pieces = [_one_piece(column) for column in columns]
    fields = [pa.field(name, piece.type) for name, piece in zip(extra, pieces[4:], strict=True)]
    return pa.record_batch(pieces, schema=pa.schema([*REQUIRED, *fields]))


def _one_piece(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array whose bytes depend on its values alone."""
    if pa.types.is_dictionary(column.type):
        # The order of a dictionary tells how the rows were gathered: number it anew.
        values = _one_piece(column.cast(column.type.value_type))
        return pc.dictionary_encode(values)
    if pa.types.is_string(column.type):
        # A string column has 32-bit offsets, and two gigabytes of text would split the batch.
        column = column.cast(pa.large_string())
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
