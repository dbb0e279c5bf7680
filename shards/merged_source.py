"""A source of all generations as one: how many shards there will be, and what is in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from shards.format import BIN, shard_file
from shards.manifest import TRAIN, VALIDATION, ShardEntry
from shards.merged import ShardSlice
from shards.range import Range
from shards.reader import Dataset
from shards.removals import Rows
from shards.storage.remote import RemotePath
from shards.storage.sparse import copy_rows
from shards.tables import between, column, map_items

SHARD_TOKENS = 100_000_000
"""Most tokens of a shard where the options do not say."""

_BIN_BITS = 16
"""Tokens are counted in so many bits of the order, to find how many shards there must be."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a slice is from: the path of a shard's entry, and its rows (int64[n])."""

    path: str
    rows: np.ndarray


def rows_among(places: Sequence[Place], rows: Mapping[str, Rows]) -> np.ndarray:
    """Return which documents (bool[n]) of slices are among rows, given by path."""
    none = np.zeros(0, np.int64)
    masks = [np.isin(place.rows, rows.get(place.path, none)) for place in places]
    return np.concatenate([np.zeros(0, bool), *masks])


class MergedSource:
    """The shards of one source in all generations, and how many become of them."""

    def __init__(self, dataset: Dataset, name: str, erased: Mapping[str, Rows]) -> None:
        """Take the shards.

        Args:
            dataset: The dataset.
            name: Of the source.
            erased: Rows that are left out, by the path of their shard's entry.
        """
        self._dataset = dataset
        self._erased = erased
        self.entries = {
            split: dataset.manifest.shards(name, split=split) for split in (TRAIN, VALIDATION)
        }

    def _table(self, shard: ShardEntry) -> tuple[pa.Table, np.ndarray]:
        """Return the documents of a shard, and the rows (int64) that are not erased."""
        table = self._dataset.mapped_table(shard)
        rows = np.arange(len(table))
        if shard.path in self._erased:
            rows = np.delete(rows, self._erased[shard.path])
        return table, rows

    @cached_property
    def _spans(self) -> dict[str, Range]:
        """The range of the orders of each shard that has documents, by its path."""
        spans = {}
        for shard in (shard for shards in self.entries.values() for shard in shards):
            if shard.documents:
                order = column(self._dataset.mapped_table(shard), "order")
                spans[shard.path] = Range(low=int(order[0]), high=int(order[-1]) + 1)
        return spans

    @cached_property
    def num_shards(self) -> int:
        """How many the new generation gets, by the rules of the pipelines."""
        options, shards = self._dataset.manifest.options, self.entries[TRAIN]
        if not shards or options.get("shards"):
            return int(options["shards"]) if shards else 0
        tokens, longest = np.zeros(1 << _BIN_BITS), 0
        for shard in shards:
            table, rows = self._table(shard)
            bins = column(table, "order")[rows] >> np.uint64(64 - _BIN_BITS)
            lengths = column(table, "tokens")[rows]
            tokens += np.bincount(bins.astype(np.int64), lengths, 1 << _BIN_BITS)
            longest = max(longest, int(lengths.max(initial=0)))
        limit = max(options.get("shard_tokens", SHARD_TOKENS), longest, 1)
        return _least_shards(tokens.astype(np.int64), limit)

    @cached_property
    def num_validation(self) -> int:
        """How many shards of validation it gets: as long as those of training."""
        train, validation = (
            sum(shard.documents for shard in self.entries[split]) for split in (TRAIN, VALIDATION)
        )
        if not self.entries[VALIDATION]:
            return 0
        return max(1, -(-self.num_shards * validation // max(1, train + validation)))

    def slices(self, split: str, within: Range) -> tuple[list[ShardSlice], list[Place]]:
        """Return what the shards of a split have in a range, and where each slice is from."""
        slices, places = [], []
        for shard in self.entries[split]:
            span = self._spans.get(shard.path)
            if span is not None and span.overlaps(within):
                table, rows = self._table(shard)
                inside = between(column(table, "order")[rows], within.low, within.high)
                slices.append(self._slice(shard, table, rows[inside]))
                places.append(Place(shard.path, rows[inside]))
        if not slices:  # the columns must come from somewhere
            shard = self.entries[split][0]
            slices.append(self._slice(shard, self._table(shard)[0], np.zeros(0, np.int64)))
        return slices, places

    def _slice(self, shard: ShardEntry, table: pa.Table, rows: np.ndarray) -> ShardSlice:
        directory = self._dataset.directory
        whole = len(rows) and len(rows) == rows[-1] + 1 - rows[0]
        chosen = table.slice(rows[0], len(rows)) if whole else table.take(rows)
        starts, documents = column(chosen, "offset"), chosen.drop_columns(["offset"])
        if isinstance(directory, RemotePath):
            starts, documents = starts.copy(), copy_rows(documents)
        tokens = map_items(
            shard_file(directory / shard.path, BIN),
            starts=starts,
            lengths=column(documents, "tokens"),
            size=shard.tokens,
        )
        return ShardSlice(documents=documents, starts=starts, tokens=tokens)


def _least_shards(tokens: np.ndarray, limit: int) -> int:
    """Return the least power of two of shards that have at most `limit` tokens each.

    Args:
        tokens: int64[n], in each of n even bins of the order.
        limit: Not below the longest document.
    """
    shards = 1
    while shards < len(tokens) and tokens.reshape(shards, -1).sum(axis=1).max() > limit:
        shards *= 2
    # Shards smaller than a bin: as if the fullest bin were evenly spread.
    fullest = int(tokens.reshape(shards, -1).sum(axis=1).max())
    return shards << (max(0, fullest - 1) // limit).bit_length()
