"""The exported tokens of a split: its documents in order, without removed documents.

    generation, source, shard     a.bin: d0 d1 d2 d3    b.bin: d4 d5
    removed                                   xx               xx
    left                                 d0 d1    d3          d4
                                  shards 0              1

A split is one sequence of tokens, which continues from shard to shard. Every removal counts,
whichever manifest added it, even for `DIR@n`: removed documents are never exported.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shards.errors import DamageError
from shards.format import ARROW, BIN, Tokens, shard_file
from shards.manifest import ShardEntry, ShardLocation
from shards.reader import Dataset, Shard
from shards.removals import Rows
from shards.storage.files import crc32c_of, is_intact
from shards.storage.remote import AnyPath
from shards.tables import column

_BLOCK_TOKENS = 1 << 21


@dataclass(frozen=True, kw_only=True)
class ExportedShard:
    """The documents that one shard adds to a split."""

    entry: ShardEntry
    source: str
    removed: Rows
    """The removed rows of the shard, which are not exported."""
    start: int
    """The number of tokens in the split before this shard."""
    tokens: int
    documents: int
    prompts: int
    """The number of documents whose first tokens carry no loss."""

    @property
    def stop(self) -> int:
        """The number of tokens in the split up to the end of this shard."""
        return self.start + self.tokens


class ExportedSplit:
    """The exported tokens of one split. Only one shard is open at a time."""

    def __init__(
        self,
        dataset: Dataset,
        split: str,
        *,
        sources: Collection[str],
        removed: Mapping[str, Rows],
    ) -> None:
        """Read the lengths of the documents.

        Args:
            dataset: The dataset.
            split: `train` or `validation`.
            sources: The names of the sources that are exported.
            removed: Removed rows by the path of their shard's entry.

        Raises:
            DamageError: A table of documents is missing or damaged.
        """
        self._dataset = dataset
        self._open: tuple[str, Shard] | None = None
        self.tokenizer = dataset.manifest.tokenizer
        """The tokenizer that made the tokens."""
        self.shards: list[ExportedShard] = []
        self.tokens = 0
        for location in dataset.manifest.locations():
            if location.split == split and location.source in sources:
                rows = removed.get(location.entry.path, np.zeros(0, np.int64))
                self.shards.append(_exported_shard(dataset, location, rows, start=self.tokens))
                self.tokens = self.shards[-1].stop
        self.documents = sum(shard.documents for shard in self.shards)
        self.prompts = sum(shard.prompts for shard in self.shards)
        self.removed = sum(len(shard.removed) for shard in self.shards)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the sources in order, each once."""
        return tuple(dict.fromkeys(shard.source for shard in self.shards if shard.tokens))

    def payload(self, shard: ExportedShard) -> AnyPath:
        """Check a shard and return its file of tokens."""
        return self.open(shard).file(BIN)

    def open(self, shard: ExportedShard) -> Shard:
        """Open a shard after reading and checking all its tokens.

        Raises:
            DamageError: A file is missing, or is not the one that the manifest names.
        """
        if self._open is None or self._open[0] != shard.entry.path:
            self._open = None  # frees the memory that a shard behind a URL takes
            opened = self._dataset.shard(shard.entry)
            _check(opened, eos=self.tokenizer.special["eos"])
            self._open = shard.entry.path, opened
        return self._open[1]

    def blocks(self, start: int, stop: int) -> Iterator[Tokens]:
        """Yield the tokens from `start` to `stop` of the split, as views of at most a few MB."""
        for shard in self.shards:
            if shard.start < stop and shard.stop > start:
                yield from self._blocks_of(shard, start - shard.start, stop - shard.start)

    def _blocks_of(self, shard: ExportedShard, start: int, stop: int) -> Iterator[Tokens]:
        opened = self.open(shard)
        position = 0
        for first, last in _runs(opened, shard.removed):
            low = first + max(0, start - position)
            high = min(last, first + stop - position)
            for begin in range(low, high, _BLOCK_TOKENS):
                yield opened.tokens[begin : min(high, begin + _BLOCK_TOKENS)]
            position += last - first

    def lengths(self, shard: ExportedShard) -> NDArray[np.int64]:
        """Return the number of tokens of each document of a shard."""
        return _without(self.open(shard).lengths, shard.removed).astype(np.int64)

    def loss(self, shard: ExportedShard) -> Iterator[NDArray[np.bool_]]:
        """Yield a mask for each document of a shard: whether each token carries loss."""
        prompts = _without(self.open(shard).prompts, shard.removed).tolist()
        for length, prompt in zip(self.lengths(shard).tolist(), prompts, strict=True):
            mask = np.ones(length, np.bool_)
            mask[:prompt] = False
            yield mask


def _exported_shard(
    dataset: Dataset, location: ShardLocation, rows: Rows, *, start: int
) -> ExportedShard:
    entry = location.entry
    table = dataset.table(entry)
    lost = int(column(table, "tokens")[rows].sum(dtype=np.int64))
    if not 0 <= lost <= entry.tokens:
        path = shard_file(dataset.directory / entry.path, ARROW)
        raise DamageError(
            f"{path} is damaged: its removed documents have {lost:,} tokens, the shard "
            f"{entry.tokens:,}. Restore it from a copy, or build the dataset again."
        )
    return ExportedShard(
        entry=entry,
        source=location.source,
        removed=rows,
        start=start,
        tokens=entry.tokens - lost,
        documents=entry.documents - len(rows),
        prompts=int(np.count_nonzero(_without(column(table, "prompt_tokens"), rows))),
    )


def _without(values: np.ndarray, rows: Rows) -> np.ndarray:
    return np.delete(values, rows) if len(rows) else values


def _runs(shard: Shard, removed: Rows) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each run of tokens between removed documents of a shard."""
    begin = 0
    for row in removed.tolist():
        first = int(shard.offsets[row])
        if begin < first:
            yield begin, first
        begin = first + int(shard.lengths[row])
    if begin < len(shard.tokens):
        yield begin, len(shard.tokens)


def _check(shard: Shard, *, eos: int) -> None:
    """Check that the files of a shard match the manifest and that every document ends with eos."""
    expected = shard.entry.files
    whole = {
        BIN: crc32c_of(shard.tokens) == expected[BIN].crc32c,
        ARROW: is_intact(shard.file(ARROW), expected[ARROW]),
    }
    for suffix, is_whole in whole.items():
        if not is_whole:
            raise DamageError(
                f"{shard.file(suffix)} is damaged: its crc32c is not {expected[suffix].crc32c:08x} "
                "as in the manifest. Restore it from a copy, or build the dataset again; the files "
                "exported so far are kept."
            )
    shard.check_lengths()
    ends = shard.offsets + shard.lengths - 1
    if len(ends) and (ends.min() < 0 or ends.max() >= len(shard.tokens)):
        raise shard.damage(ARROW, "a document is outside the shard")
    if (shard.tokens[ends] != eos).any():
        raise shard.damage(BIN, f"a document does not end in the token {eos}")
