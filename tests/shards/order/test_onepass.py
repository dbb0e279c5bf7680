from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from shards.order.onepass import OnePass
from shards.order.streams import Stream
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
