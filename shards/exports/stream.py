"""The tokens that leave a dataset: a split's documents in order, without those that were removed.

    generation, source, shard     a.bin: d0 d1 d2 d3    b.bin: d4 d5
    removed                                   xx               xx
    left                                 d0 d1    d3          d4
                                  pieces 0              1

A split is one stream of tokens; its pieces are what each shard adds to it. A removal counts
whatever manifest it came with, also for `DIR@n`: what was taken down is not handed on.
"""

import itertools
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shards.errors import DamageError
from shards.format import ARROW, BIN, Tokens, shard_file
from shards.manifest import ShardEntry, TokenizerEntry
from shards.reader import Dataset, Shard
from shards.removals import Rows
from shards.storage.files import crc32c_of, intact
from shards.storage.remote import AnyPath
from shards.tables import column

_BLOCK_TOKENS = 1 << 21
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What one shard adds to a split."""

    entry: ShardEntry
    split: str = ""
    source: str = ""
    removed: Rows
    """Its rows that stay behind."""
    start: int = 0
    """Tokens of the split before it."""
    tokens: int
    documents: int
    prompts: int
    """Documents whose first tokens carry no loss."""

    @property
    def stop(self) -> int:
        """Tokens of the split up to its end."""
        return self.start + self.tokens


class SplitStream:
    """The tokens of one split that leave. One shard is open at a time."""

    def __init__(self, dataset: Dataset, pieces: Sequence[Piece]) -> None:
        self._dataset = dataset
        self._open: tuple[str, Shard] | None = None
        self.pieces = tuple(pieces)
        self._starts = [piece.start for piece in pieces]
        self.tokens = sum(piece.tokens for piece in pieces)
        self.documents = sum(piece.documents for piece in pieces)
        self.prompts = sum(piece.prompts for piece in pieces)
        self.removed = sum(len(piece.removed) for piece in pieces)

    @property
    def tokenizer(self) -> TokenizerEntry:
        """What made the tokens."""
        return self._dataset.manifest.tokenizer

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that follow one another, each once."""
        return tuple(dict.fromkeys(piece.source for piece in self.pieces if piece.tokens))

    def path(self, piece: Piece) -> AnyPath:
        """Return the file of the tokens of a piece's shard."""
        return shard_file(self._dataset.directory / piece.entry.path, BIN)

    def shard(self, piece: Piece) -> Shard:
        """Return the open shard of a piece; all its tokens have been read and checked.

        Raises:
            DamageError: A file is missing, or is not the one that the manifest names.
        """
        if self._open is None or self._open[0] != piece.entry.path:
            self._open = None  # behind a URL it is memory
            shard = self._dataset.shard(piece.entry)
            _check(shard, eos=self.tokenizer.special["eos"])
            self._open = piece.entry.path, shard
        return self._open[1]

    def blocks(self, start: int, stop: int) -> Iterator[Tokens]:
        """Yield the tokens from `start` to `stop` of the split, views of a few MB at most."""
        first = max(0, bisect_right(self._starts, start) - 1)
        for piece in itertools.islice(self.pieces, first, None):
            if piece.start >= stop:
                return
            if piece.tokens:
                yield from self._blocks_of(piece, start - piece.start, stop - piece.start)

    def _blocks_of(self, piece: Piece, start: int, stop: int) -> Iterator[Tokens]:
        shard = self.shard(piece)
        position = 0
        for first, last in _runs(shard, piece.removed):
            low = first + max(0, start - position)
            high = min(last, first + stop - position)
            for begin in range(low, high, _BLOCK_TOKENS):
                yield shard.tokens[begin : min(high, begin + _BLOCK_TOKENS)]
            position += last - first

    def lengths(self, piece: Piece) -> NDArray[np.int64]:
        """Return the number of tokens of each document of a piece."""
        return _without(self.shard(piece).lengths, piece.removed).astype(np.int64)

    def loss(self, piece: Piece) -> Iterator[NDArray[np.bool_]]:
        """Yield whether each token of a piece carries loss, some documents at a time."""
        lengths = self.lengths(piece)
        prompts = _without(self.shard(piece).prompts, piece.removed)
        for rows in _batches(lengths):
            sizes = lengths[rows]
            mask = np.ones(sizes.sum(), np.bool_)
            starts = np.cumsum(sizes) - sizes
            for start, prompt in zip(starts.tolist(), prompts[rows].tolist(), strict=True):
                mask[start : start + prompt] = False
            yield mask


def _batches(lengths: NDArray[np.int64]) -> Iterator[slice]:
    """Yield runs of documents that take a few MB together, or are one that takes more."""
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        limit = (int(ends[first - 1]) if first else 0) + _BLOCK_TOKENS
        stop = int(np.searchsorted(ends, limit, side="right"))
        stop = min(max(stop, first + 1), first + _ROWS_AT_ONCE)
        yield slice(first, stop)
        first = stop


def split_stream(
    dataset: Dataset, split: str, *, sources: Collection[str], removed: Mapping[str, Rows]
) -> SplitStream:
    """Return what leaves of a split, after looking at the lengths of its documents.

    Args:
        dataset: The dataset.
        split: `train` or `validation`.
        sources: Names of those that are taken.
        removed: Rows that stay behind, by the path of their shard's entry.

    Raises:
        DamageError: A table of documents is missing or damaged.
    """
    pieces: list[Piece] = []
    start = 0
    for _, name, source in dataset.manifest.source_entries():
        for entry in source.split(split) if name in sources else ():
            piece = _piece(dataset, entry, removed.get(entry.path))
            pieces.append(replace(piece, split=split, source=name, start=start))
            start = pieces[-1].stop
    return SplitStream(dataset, pieces)


def _piece(dataset: Dataset, entry: ShardEntry, removed: Rows | None) -> Piece:
    table = dataset.table(entry)
    rows = np.zeros(0, np.int64) if removed is None else removed
    lost = int(column(table, "tokens")[rows].sum(dtype=np.int64))
    if not 0 <= lost <= entry.tokens:
        path = shard_file(dataset.directory / entry.path, ARROW)
        raise DamageError(
            f"{path} is damaged: its removed documents have {lost:,} tokens, the shard "
            f"{entry.tokens:,}. Restore it from a copy, or build the dataset again."
        )
    prompts = _without(column(table, "prompt_tokens"), rows)
    return Piece(
        entry=entry,
        removed=rows,
        tokens=entry.tokens - lost,
        documents=entry.documents - len(rows),
        prompts=int(np.count_nonzero(prompts)),
    )


def _without(values: np.ndarray, rows: Rows) -> np.ndarray:
    return np.delete(values, rows) if len(rows) else values


def _runs(shard: Shard, removed: Rows) -> Iterator[tuple[int, int]]:
    """Yield where the tokens between removed documents begin and end in their shard."""
    begin = 0
    for row in removed.tolist():
        first = int(shard.offsets[row])
        if begin < first:
            yield begin, first
        begin = first + int(shard.lengths[row])
    if begin < len(shard.tokens):
        yield begin, len(shard.tokens)


def _check(shard: Shard, *, eos: int) -> None:
    """Check that the files of a shard are those of the manifest, and that every document ends."""
    expected = shard.entry.files
    whole = {
        BIN: crc32c_of(shard.tokens) == expected[BIN].crc32c,
        ARROW: intact(shard.file(ARROW), expected[ARROW]),
    }
    for suffix, is_whole in whole.items():
        if not is_whole:
            raise DamageError(
                f"{shard.file(suffix)} has not the crc32c that the manifest says "
                f"({expected[suffix].crc32c:08x}): it is damaged, and is not handed on. Restore it "
                "from a copy, or build the dataset again; files exported so far are kept."
            )
    shard.check_lengths()
    ends = shard.offsets + shard.lengths - 1
    if len(ends) and (ends.min() < 0 or ends.max() >= len(shard.tokens)):
        raise shard.damage(ARROW, "a document lies outside of the shard")
    if (shard.tokens[ends] != eos).any():
        raise shard.damage(BIN, f"a document does not end in the token {eos}")
