"""Reads a dataset as a training run does: every window exactly once, on any number of ranks."""

import math
import random
from collections import Counter
from pathlib import Path

import numpy as np

from tests.soak.check import agree
from tests.soak.dataset import Plain

Bag = Counter[tuple[int, ...]]
_MOST_WINDOWS = 4000


def check_reading(rng: random.Random, folder: Path) -> None:
    """Read a dataset's train and validation windows and compare them with its shards."""
    from shards.manifest import TRAIN, VALIDATION  # noqa: PLC0415 - loads torch below
    from shards.order.onepass import OnePass  # noqa: PLC0415
    from shards.order.sampler import Sampler  # noqa: PLC0415
    from shards.order.streams import streams_of  # noqa: PLC0415
    from shards.reader import Dataset  # noqa: PLC0415
    from shards.windows import causal_windows, glm_windows  # noqa: PLC0415
    from trainer.loader import Loader, read_once  # noqa: PLC0415

    plain, dataset = Plain(folder), Dataset.open(folder)
    length = rng.choice((16, 64, 200))
    world = rng.choice((1, 2, 3))
    batch = world * rng.choice((1, 4))
    for split in (TRAIN, VALIDATION):
        streams = streams_of(dataset, split=split)
        windows = [
            window
            for generation in plain.manifest["generations"]
            for source in sorted(generation["sources"])
            for window in _windows(plain, generation, source, split=split, length=length)
        ]
        if not streams or len(windows) > _MOST_WINDOWS:
            agree(f"streams of {split}", bool(streams), bool(windows))
            continue
        expected: Bag = Counter(window for window in windows)
        once = OnePass(streams, window=causal_windows(length))
        read: Bag = Counter()
        for rank in range(world):
            for tensors in read_once(once, batch_size=batch, rank=rank, world=world):
                read.update(_texts(tensors))
        _compare(f"windows of {split}, read once by {world} ranks", read, expected)
        if split == VALIDATION:
            continue
        for epoch in range(2):
            read = Counter()
            sampler = Sampler(streams, seed=7, num_scatters=1, window=causal_windows(length))
            steps = math.ceil((epoch + 1) * len(windows) / batch)
            rows: list[list[tuple[int, ...]]] = []
            for rank in range(world):
                loader = Loader(
                    sampler, batch_size=batch, rank=rank, world=world, steps=steps, ahead=0
                )
                for step, tensors in enumerate(loader):
                    if rank == 0:
                        rows.append([])
                    rows[step] += _texts(tensors)
            drawn = [row for step in rows for row in step]
            first = epoch * len(windows)
            read.update(drawn[first : first + len(windows)])
            if epoch == 0:
                _compare(f"windows of the first epoch on {world} ranks", read, expected)
            elif len(streams) == 1:
                _compare("tokens of the second epoch", _tokens(read), _tokens(expected))
        glm = OnePass(streams, window=glm_windows(length))
        read = Counter()
        for rank in range(world):
            for tensors in read_once(glm, batch_size=batch, rank=rank, world=world):
                read.update(_texts(tensors))
        special = plain.manifest["tokenizer"]["special"]["cls"]
        _compare("tokens of GLM windows", _tokens(read, special), _tokens(expected))


def _windows(
    plain: Plain, generation: dict[str, object], source: str, *, split: str, length: int
) -> list[tuple[int, ...]]:
    """Return the windows of the first epoch, without removed documents."""
    removed = plain.removed()
    windows = []
    for shard in plain.shards(generation, source, split):
        tokens = plain.tokens(shard)
        kept = np.ones(len(tokens), bool)
        for row, document in enumerate(plain.table(shard)):
            if (shard["path"], row) in removed:
                kept[document["offset"] : document["offset"] + document["tokens"]] = False
        for start in range(0, len(tokens), length):
            part = slice(start, start + length)
            windows.append(tuple(tokens[part][kept[part]].tolist()))
    return windows


def _texts(tensors: object) -> list[tuple[int, ...]]:
    """Return the tokens of each row of a batch without padding; rows that only fill up are left."""
    batch: dict[str, np.ndarray] = {
        name: tensor.numpy() for name, tensor in tensors.items()  # type: ignore[attr-defined]
    }
    lengths = batch["lengths"].tolist()
    return [tuple(row[:length].tolist()) for row, length in zip(batch["tokens"], lengths, strict=True)]


def _tokens(bag: Bag, without: int = -1) -> Bag:
    counts: Bag = Counter()
    for row, times in bag.items():
        for token in row:
            if token != without:
                counts[token,] += times
    return counts


def _compare(what: str, read: Bag, expected: Bag) -> None:
    """Compare bags of rows; rows without text may also be fillings."""
    read, expected = Counter(read), Counter(expected)
    read.pop((), None)
    expected.pop((), None)
    agree(f"{what}: missing", expected - read, Counter())
    agree(f"{what}: too many", read - expected, Counter())
