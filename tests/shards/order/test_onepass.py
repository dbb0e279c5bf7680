from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shards.manifest import VALIDATION
from shards.order.onepass import OnePass
from shards.order.streams import Stream, streams_of
from shards.reader import Dataset
from shards.windows import causal_windows

Make = Callable[..., Stream]


@pytest.mark.parametrize("world", [1, 2, 3, 8, 64])
def test_every_window_once_over_all_ranks(make_stream: Make, world: int) -> None:
    tokens = {"a": [25, 0, 10, 1], "b": [1], "c": [0, 0, 7]}
    streams = [make_stream(name, counts) for name, counts in tokens.items()]
    once = OnePass(streams, window=causal_windows(10))
    seen: Counter[tuple[int, int, int]] = Counter()
    for rank in range(world):
        draws = once.draw(np.arange(len(once))[rank::world])
        shard, window, phase = once.locate(draws)
        assert not phase.any()
        assert not draws.epoch.any()
        seen.update(zip(draws.stream.tolist(), shard.tolist(), window.tolist(), strict=True))
    expected = [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 2, 0), (0, 3, 0), (1, 0, 0), (2, 2, 0)]
    assert seen == Counter(expected)


def test_validation_of_a_dataset(pristine: Path) -> None:
    streams = streams_of(Dataset.open(pristine), split=VALIDATION)
    assert len(OnePass(streams, window=causal_windows(4))) == 3


def test_beyond_the_end(make_stream: Make) -> None:
    once = OnePass([make_stream("a", [25])], window=causal_windows(10))
    for position in (-1, 3):
        with pytest.raises(IndexError, match="has 3 windows"):
            once.draw([position])
