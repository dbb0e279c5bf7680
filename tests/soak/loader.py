"""Reads a dataset like a training run, and checks that it reads every window exactly once."""

import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shards.manifest import TRAIN, VALIDATION
from shards.reader import Dataset
from shards.sampling.sampler import Sampler
from shards.sampling.sequential import SequentialSampler
from shards.sampling.streams import Stream, streams_of
from shards.sampling.windows import WindowSpec, causal_windows, glm_windows
from tests.soak.check import check_equal
from tests.soak.dataset import PlainDataset
from trainer.loader import Loader, Tensors, read_once

Row = tuple[int, ...]
Bag = Counter[Row]
_MAX_WINDOWS = 4000


@dataclass(frozen=True)
class Ranks:
    """The ranks of a training run, and the size of batches and windows."""

    world: int
    batch: int
    """The number of samples of all ranks together."""
    length: int
    """The number of tokens per window."""


def check_reading(rng: random.Random, folder: Path) -> None:
    """Read a dataset's train and validation windows, and compare them with the shards."""
    plain, dataset = PlainDataset(folder), Dataset.open(folder)
    world = rng.choice((1, 2, 3))
    ranks = Ranks(world, world * rng.choice((1, 4)), rng.choice((16, 64, 200)))
    for split in (TRAIN, VALIDATION):
        streams = streams_of(dataset, split=split)
        by_stream = _windows(plain, split=split, length=ranks.length)
        windows = [window for part in by_stream for window in part]
        check_equal(f"streams of {split}", len(streams), len(by_stream))
        if streams and len(windows) <= _MAX_WINDOWS:
            _check_once(plain, streams, windows, ranks)
            if split == TRAIN:
                _check_epochs(streams, windows, ranks)


def _check_once(
    plain: PlainDataset, streams: Sequence[Stream], windows: Sequence[Row], ranks: Ranks
) -> None:
    """Check that evaluation, with windows of both kinds, reads each window once."""
    expected = Counter(windows)
    read = _read_once(streams, causal_windows(ranks.length), ranks)
    _compare(f"windows read once by {ranks.world} ranks", read, expected)
    read = _read_once(streams, glm_windows(ranks.length), ranks)
    special = plain.manifest["tokenizer"]["special"]["cls"]
    _compare("tokens of GLM windows", _tokens(read, special), _tokens(expected))


def _read_once(streams: Sequence[Stream], window: WindowSpec, ranks: Ranks) -> Bag:
    read: Bag = Counter()
    once = SequentialSampler(streams, window=window)
    for rank in range(ranks.world):
        for tensors in read_once(once, batch_size=ranks.batch, rank=rank, world=ranks.world):
            read.update(_texts(tensors))
    return read


def _drawn(sampler: Sampler, ranks: Ranks, steps: int) -> list[Row]:
    """Return the tokens of all samples, step by step and rank by rank."""
    drawn: list[list[Row]] = [[] for _ in range(steps)]
    for rank in range(ranks.world):
        loader = Loader(
            sampler,
            batch_size=ranks.batch,
            rank=rank,
            world=ranks.world,
            steps=steps,
            ahead=rank % 2,
        )
        for step, tensors in enumerate(loader):
            drawn[step] += _texts(tensors)
    return [row for step in drawn for row in step]


def _check_epochs(streams: Sequence[Stream], windows: Sequence[Row], ranks: Ranks) -> None:
    """Check that training reads each window once in epoch 1, and each token once in epoch 2."""
    sampler = Sampler(streams, seed=7, num_scatters=1, window=causal_windows(ranks.length))
    steps = math.ceil(2 * len(windows) / ranks.batch)
    rows = _drawn(sampler, ranks, steps)
    expected = Counter(windows)
    first = Counter(rows[: len(windows)])
    _compare(f"windows of the first epoch on {ranks.world} ranks", first, expected)
    if len(streams) == 1:
        second = Counter(rows[len(windows) : 2 * len(windows)])
        _compare("tokens of the second epoch", _tokens(second), _tokens(expected))


def _windows(plain: PlainDataset, *, split: str, length: int) -> list[list[Row]]:
    """Return the windows of the first epoch by stream, leaving out removed documents."""
    removed = plain.removed()
    return [
        [
            window
            for shard in plain.shards(generation, source, split)
            for window in _windows_of(plain, shard, removed, length)
        ]
        for generation in plain.manifest["generations"]
        for source in sorted(generation["sources"])
        if sum(shard["tokens"] for shard in plain.shards(generation, source, split))
    ]


def _windows_of(
    plain: PlainDataset, shard: dict[str, Any], removed: set[tuple[str, int]], length: int
) -> Iterable[Row]:
    tokens = plain.tokens(shard)
    kept = np.ones(len(tokens), bool)
    for row, document in enumerate(plain.table(shard)):
        if (shard["path"], row) in removed:
            kept[document["offset"] : document["offset"] + document["tokens"]] = False
    for start in range(0, len(tokens), length):
        part = slice(start, start + length)
        yield tuple(tokens[part][kept[part]].tolist())


def _texts(tensors: Tensors) -> list[Row]:
    """Return the tokens of each row of a batch, minus the padding."""
    rows, lengths = tensors["tokens"].tolist(), tensors["lengths"].tolist()
    return [tuple(row[:length]) for row, length in zip(rows, lengths, strict=True)]


def _tokens(bag: Bag, without: int = -1) -> Bag:
    counts: Bag = Counter()
    for row, times in bag.items():
        for token in row:
            if token != without:
                counts[token,] += times
    return counts


def _compare(what: str, read: Bag, expected: Bag) -> None:
    """Compare how often each row occurs, except empty rows, which only fill up a batch."""
    empty: Bag = Counter({(): max(read[()], expected[()])})
    check_equal(f"{what}: missing", expected - read - empty, Counter())
    check_equal(f"{what}: too many", read - expected - empty, Counter())
