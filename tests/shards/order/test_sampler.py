from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shards.errors import UserError
from shards.order.sampler import Sampler
from shards.order.scatter import rank_slots
from shards.order.stages import MixtureStage
from shards.order.streams import Stream
from shards.windows import causal_windows

Make = Callable[..., Stream]
Row = tuple[int, ...]

WINDOW = causal_windows(10)
# "wide" lies in scatters; the others are common: too few shards, or too many empty ones.
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
    """Return stream, epoch, shard, window, phase, key of each position."""
    drawn = sampler.draw(positions)
    columns = (drawn.stream, drawn.epoch, *sampler.locate(drawn), sampler.keys(drawn))
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_every_window_once_an_epoch(streams: list[Stream]) -> None:
    """Nothing is lost and nothing comes twice, in each epoch, stream and scatter."""
    sampler = make_sampler(streams)
    seen: dict[Row, Counter[Row]] = {}
    drawn = sampler.draw(range(5000))
    places = sampler.locate(drawn)
    for i, (stream, scatter, epoch) in enumerate(
        zip(drawn.stream.tolist(), drawn.scatter.tolist(), drawn.epoch.tolist(), strict=True)
    ):
        assert scatter == i % 4
        common = stream != 0
        shard, window = int(places.shard[i]), int(places.window[i])
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
    """The set of every global batch is the same, however it is dealt, sized and resumed."""
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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=10), st.sampled_from([1, 2, 4, 8]))
def test_back_to_the_position(streams: list[Stream], positions: list[int], scatters: int) -> None:
    sampler = make_sampler(streams, num_scatters=scatters)
    for position, row in zip(positions, rows(sampler, np.array(positions)), strict=True):
        stream, epoch, shard, window, *_ = row
        assert position == sampler.position_of(stream, shard=shard, window=window, epoch=epoch)


def test_caps(streams: list[Stream]) -> None:
    with pytest.raises(
        UserError, match=r"wide would be seen .* cap is 2\. End at position"
    ) as error:
        make_sampler(streams, epoch_caps={"wide": 2}, end=400)
    last = int(str(error.value).split("End at position ")[1].split(",")[0])
    assert make_sampler(streams, epoch_caps={"wide": 2}, end=last).epochs(last)[0] <= 2
    with pytest.raises(UserError, match=f"End at position {last},"):
        make_sampler(streams, epoch_caps={"wide": 2}, end=last + 1)


def test_a_stream_without_a_token_is_refused(streams: list[Stream], make_stream: Make) -> None:
    with pytest.raises(
        UserError, match=r"there must be streams, and each must hold tokens.*'none'"
    ):
        make_sampler([*streams, make_stream("none", [0, 0])])


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ([(5, {"wide": 1})], r"positions \[5\]: the first must start at 0"),
        ([(0, {"wide": 1}), (9, {"one": 1}), (9, {"one": 2})], "each later than the one before"),
        ([(0, {"wide": 1}), (9, {"pile": 1})], "stage at position 9 a weight is given for pile, "),
        ([(0, {"wide": 0})], "at least one more than 0"),
    ],
)
def test_stages_that_cannot_be(
    streams: list[Stream], schedule: list[tuple[int, dict[str, float]]], message: str
) -> None:
    stages = [MixtureStage(start=start, weights=weights) for start, weights in schedule]
    with pytest.raises(UserError, match=message):
        make_sampler(streams, stages=stages)
