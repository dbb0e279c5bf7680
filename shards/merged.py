"""One shard out of parts of others: the documents of several slices, sorted by order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shards.manifest import ShardEntry
from shards.storage.remote import AnyPath
from shards.tables import column
from shards.writer import write_shard


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSlice:
    """Documents of one segment or shard, and where the tokens of each begin in `tokens`."""

    documents: pa.Table
    starts: np.ndarray
    tokens: np.ndarray


def merged_order(slices: Sequence[ShardSlice]) -> np.ndarray:
    """Return the place (int64[n]) among the rows of all slices of each document, by order.

    Equal orders keep the order of the slices, which is that of the documents' identities.
    """
    orders = [column(part.documents, "order") for part in slices]
    return np.argsort(np.concatenate([np.zeros(0, np.uint64), *orders]), kind="stable")


def write_merged_shard(
    stem: AnyPath, slices: Sequence[ShardSlice], *, directory: AnyPath, dtype: np.dtype[Any]
) -> ShardEntry:
    """Write the documents of all slices as a shard, sorted by order.

    Equal orders keep the order of the slices, which is that of the documents' identities.
    """
    parts = [part.documents for part in slices]
    documents = pa.concat_tables(parts, promote_options="default").unify_dictionaries()
    ranked = merged_order(slices)
    owners = np.repeat(np.arange(len(slices)), [len(part.starts) for part in slices])
    documents = documents.take(ranked)
    return write_shard(
        stem,
        documents,
        directory=directory,
        tokens=gather(
            [part.tokens.view(dtype) for part in slices],
            owners[ranked],
            starts=np.concatenate([part.starts for part in slices])[ranked],
            lengths=column(documents, "tokens"),
        ),
        dtype=dtype,
    )


def gather(
    tokens: Sequence[np.ndarray], owners: np.ndarray, *, starts: np.ndarray, lengths: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield the tokens of n documents in this order, a thousand documents at a time.

    Args:
        tokens: Arrays of tokens.
        owners: int[n], the array that holds each document.
        starts: int[n], where the document begins there.
        lengths: int[n], how many tokens it has.
    """
    for first_row in range(0, len(owners), 1024):
        part = slice(first_row, first_row + 1024)
        rows = zip(*(array[part].tolist() for array in (owners, starts, lengths)), strict=True)
        yield np.concatenate([tokens[owner][first : first + size] for owner, first, size in rows])
