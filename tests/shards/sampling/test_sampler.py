"""Guarantee: Every token comes once in an epoch; resuming and other worlds change nothing."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shards.sampling.sampler import Sampler
from shards.sampling.scatter import rank_slots
from shards.sampling.streams import Stream
from shards.sampling.windows import causal_windows

Make = Callable[..., Stream]
Row = tuple[int, ...]

WINDOW = causal_windows(10)
# The stream "wide" is in scatters; the others are common, because they have too few shards, or too
# many empty ones.
TOKENS: dict[str, Sequence[int]] = {
    "wide": [95, 40, 3, 71, 0, 33, 120, 8],
    "narrow": [57, 21],
    "hollow": [12, 0, 0, 0, 5, 0, 0, 0],
    "one": [1],
}


@pytest.fixture
def streams(make_stream: Make) -> list[Stream]:
    return [make_stream(name, tokens) for name, tokens in TOKENS.items()]


def make_sampler(streams: Sequence[Stream], **options: Any) -> Sampler:
    arguments: dict[str, Any] = {"seed": 1, "num_scatters": 4, "window": WINDOW, **options}
    return Sampler(streams, **arguments)


def rows(sampler: Sampler, positions: NDArray[np.int64] | range) -> list[Row]:
    """Return the stream, epoch, shard, window, phase and key of each position."""
    drawn = sampler.draw(positions)
    names = ("stream", "epoch", "shard", "window", "phase", "key")
    columns = [getattr(drawn, name) for name in names]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_every_window_once_an_epoch(streams: list[Stream]) -> None:
    """No window is missing or occurs twice in any epoch, stream and scatter."""
    sampler = make_sampler(streams)
    seen: dict[Row, Counter[Row]] = {}
    drawn = sampler.draw(range(5000))
    for i, (stream, scatter, epoch) in enumerate(
        zip(drawn.stream.tolist(), drawn.scatter.tolist(), drawn.epoch.tolist(), strict=True)
    ):
        assert scatter == i % 4
        common = stream != 0
        shard, window = int(drawn.shard[i]), int(drawn.window[i])
        assert common or shard % 4 == scatter
        cell = (stream, 0 if common else scatter, epoch)
        seen.setdefault(cell, Counter())[shard, window] += 1
    for (stream, scatter, epoch), windows in seen.items():
        assert max(windows.values()) == 1, (stream, scatter, epoch)
        step = 4 if stream == 0 else 1
        tokens = list(TOKENS[streams[stream].name])
        everything = {
            (shard, window)
            for shard in range(scatter, len(tokens), step)
            for window in range(-(-tokens[shard] // 10))
        }
        assert set(windows) <= everything
        if (stream, scatter, epoch + 2) in seen:
            assert set(windows) == everything
    assert max(epoch for _, _, epoch in seen) >= 10


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_worlds_batches_and_interruptions_change_nothing(
    streams: list[Stream], data: st.DataObject
) -> None:
    """Global batches have the same windows on any number of ranks, at any size, after any stop."""
    scatters = data.draw(st.sampled_from([1, 2, 4, 8]))
    start = data.draw(st.integers(0, 10**9))
    sampler = make_sampler(streams, num_scatters=scatters)
    expected = rows(sampler, np.arange(start, start + 300))
    position = start
    got: list[Row] = []
    for _ in range(4):
        world = data.draw(st.sampled_from([1, 2, 3, 5, 7, 8]))
        size = world * data.draw(st.integers(1, 6))
        resumed = make_sampler(streams, num_scatters=scatters)
        assert resumed.load_state_dict(sampler.state_dict(position)) == position
        batch: dict[int, Row] = {}
        for rank in range(world):
            slots = rank_slots(size, scatters, world=world, rank=rank, position=position)
            drawn = rows(resumed, position + slots)
            batch.update(zip(slots.tolist(), drawn, strict=True))
        got += [batch[slot] for slot in range(size)]
        position += size
    assert got == expected[: len(got)]
    assert len(got) >= 4
    for position, (stream, epoch, shard, window, *_) in enumerate(expected[:9], start):
        assert position == sampler.position_of(stream, shard=shard, window=window, epoch=epoch)
