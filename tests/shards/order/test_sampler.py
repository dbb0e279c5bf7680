import json
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shards.errors import UserError
from shards.order.permutation import permutation_key, permute
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


def test_golden_draws(streams: list[Stream]) -> None:
    sampler = make_sampler(streams)
    drawn = sampler.draw(range(1_000_000, 1_000_012))
    assert drawn.stream.tolist() == GOLDEN["stream"]
    assert drawn.epoch.tolist() == GOLDEN["epoch"]
    assert drawn.sample.tolist() == GOLDEN["sample"]
    assert [column.tolist() for column in sampler.locate(drawn)] == GOLDEN["places"]
    assert (drawn.stream.dtype, drawn.sample.dtype) == (np.int32, np.int64)


GOLDEN: dict[str, list[Any]] = {
    "stream": [1, 0, 0, 2, 0, 0, 0, 0, 0, 1, 1, 0],
    "epoch": [18867, 23584, 14513, 18867, 18868, 23585, 14513, 20964, 18868, 18868, 18868, 20964],
    "sample": [7, 2, 4, 0, 0, 4, 5, 6, 3, 0, 5, 3],
    "places": [
        [1, 1, 6, 0, 0, 5, 6, 3, 0, 0, 0, 3],
        [1, 2, 3, 0, 0, 0, 4, 6, 3, 0, 5, 3],
        [7, 4, 3, 4, 9, 0, 3, 9, 9, 2, 2, 9],
    ],
}


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


def test_epochs_are_shuffled_again(streams: list[Stream]) -> None:
    sampler = make_sampler(streams[:1])
    size = int(sampler.cells.sizes[0])
    order = [row[2:4] for row in rows(sampler, np.arange(0, 4 * 3 * size, 4))]
    epochs = [order[i * size : (i + 1) * size] for i in range(3)]
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert len({tuple(sorted(epoch)) for epoch in epochs}) == 1


def test_the_sample_is_the_permutation_of_the_draw(make_stream: Make) -> None:
    sampler = make_sampler([make_stream("big", [10_000, 20_000])], num_scatters=2)
    drawn = sampler.draw([1 + 2 * (2000 + 77)])
    key = permutation_key(1, "big", 1, 1)
    assert (int(drawn.epoch[0]), int(drawn.scatter[0])) == (1, 1)
    assert drawn.sample.tolist() == permute(77, 2000, key).tolist()


def test_phases(make_stream: Make) -> None:
    """None in epoch 0; later one for all windows of a shard in an epoch, spread over the stride."""
    sampler = make_sampler([make_stream("s", [1000] * 4)], window=causal_windows(100))
    phases_of: dict[Row, set[int]] = {}
    for _, epoch, shard, _, phase, _ in rows(sampler, range(4 * 10 * 40)):
        phases_of.setdefault((epoch, shard), set()).add(phase)
    assert all(len(phases) == 1 for phases in phases_of.values())
    assert {min(phases) for (epoch, _), phases in phases_of.items() if epoch == 0} == {0}
    later = [min(phases) for (epoch, _), phases in phases_of.items() if epoch]
    assert len(set(later)) > 50
    assert 0 <= min(later) < 20
    assert 80 < max(later) < 100
    for (epoch, shard), phases in phases_of.items():
        assert sampler.phase_of(0, shard=shard, epoch=epoch) == min(phases)


def test_keys_are_of_the_sample_and_its_epoch(streams: list[Stream]) -> None:
    sampler = make_sampler(streams)
    keys = [row[-1] for row in rows(sampler, range(20_000))]
    assert len(set(keys)) == 20_000
    assert max(keys) >= 2**63


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


def test_a_stream_that_is_no_longer_drawn(streams: list[Stream]) -> None:
    stages = [
        MixtureStage(start=0, weights={"wide": 1, "one": 1}),
        MixtureStage(start=40, weights={"wide": 1}),
    ]
    sampler = make_sampler(streams, stages=stages)
    positions = [sampler.position_of(3, shard=0, window=0, epoch=epoch) for epoch in range(30)]
    known = [position for position in positions if position is not None]
    assert len(known) == int((sampler.draw(range(40)).stream == 3).sum())
    assert max(known) < 40
    assert positions[len(known) :] == [None] * (30 - len(known))


def test_order_and_number_of_positions_do_not_matter(streams: list[Stream]) -> None:
    sampler = make_sampler(streams)
    shuffled = np.random.default_rng(0).permutation(500)
    expected = rows(sampler, range(500))
    assert rows(sampler, shuffled) == [expected[i] for i in shuffled]
    assert [rows(sampler, np.array([i]))[0] for i in range(20)] == expected[:20]
    assert len(sampler.draw([])) == 0


def test_where_it_starts_from(streams: list[Stream]) -> None:
    """Without weights a stream is drawn as often as it has windows."""
    sampler = make_sampler(streams)
    drawn = np.bincount(sampler.draw(range(4 * 50 * 10)).stream, minlength=4)
    windows = [40, 9, 3, 1]
    expected = np.array(windows) * 2000 / sum(windows)
    assert sampler.cells.windows_of_streams == windows
    assert np.abs(drawn - expected).max() < 4 * 2
    assert sampler.counts([2000]).sum() == 500


def test_a_state_is_small_and_json(streams: list[Stream]) -> None:
    sampler = make_sampler(streams)
    state = json.loads(json.dumps(sampler.state_dict(123)))
    assert state["position"] == 123
    assert make_sampler(streams).load_state_dict(state) == 123
    again = pickle.loads(pickle.dumps(sampler))
    assert rows(again, range(50)) == rows(sampler, range(50))
    assert again.identity == sampler.identity


def test_going_on_with_more_data(streams: list[Stream], make_stream: Make) -> None:
    """A new generation is a further stage: what was drawn before stays what it was."""
    old = make_sampler(streams)
    state = old.state_dict(777)
    grown = [make_stream("g2", [300] * 4), *streams]
    later = MixtureStage(start=777, weights={"wide": 1, "g2": 1})
    saved = [MixtureStage(start=each["start"], weights=each["draws"]) for each in state["stages"]]
    new = make_sampler(grown, stages=[*saved, later])
    assert new.load_state_dict(state) == 777
    before = [(stream + 1, *row) for stream, *row in rows(old, range(777))]
    assert rows(new, range(777)) == before
    assert {row[0] for row in rows(new, range(777, 900))} == {0, 1}
    assert new.identity != old.identity


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"seed": 2}, "seed was 1, now it is 2"),
        ({"num_scatters": 8}, "num_scatters was 4, now it is 8"),
        ({"window": causal_windows(20)}, "window was .*'length': 10.*'length': 20"),
        (
            {"stages": [MixtureStage(start=0, weights={"wide": 1})]},
            "stages was .* further stage from 99",
        ),
        ({"stages": ()}, None),
    ],
)
def test_states_of_another_run(
    streams: list[Stream], options: dict[str, Any], name: str | None
) -> None:
    state = make_sampler(streams).state_dict(99)
    other = make_sampler(streams, **options)
    if name is None:
        assert other.load_state_dict(state) == 99
        return
    with pytest.raises(UserError, match=rf"saved one at position 99: {name}"):
        other.load_state_dict(state)


def test_states_of_other_shards(streams: list[Stream], make_stream: Make) -> None:
    state = make_sampler(streams, stages=[MixtureStage(start=0, weights={"wide": 1})]).state_dict(9)
    recut = make_stream("wide", [sum(TOKENS["wide"][i::4]) for i in range(4)])
    with pytest.raises(UserError, match="position 9: shards was"):
        make_sampler([recut], stages=[MixtureStage(start=0, weights={"wide": 1})]).load_state_dict(
            state
        )


def test_caps(streams: list[Stream]) -> None:
    sampler = make_sampler(streams)
    epochs = sampler.epochs(400)
    drawn = sampler.draw(range(400))
    for stream in range(4):
        own = drawn.epoch[drawn.stream == stream]
        assert int(own.max()) == int(np.ceil(epochs[stream])) - 1
    assert sampler.epochs(0).tolist() == [0] * 4
    with pytest.raises(
        UserError, match=r"wide would be seen .* cap is 2\. End at position"
    ) as error:
        make_sampler(streams, epoch_caps={"wide": 2}, end=400)
    last = int(str(error.value).split("End at position ")[1].split(",")[0])
    assert make_sampler(streams, epoch_caps={"wide": 2}, end=last).epochs(last)[0] <= 2
    with pytest.raises(UserError, match=f"End at position {last},"):
        make_sampler(streams, epoch_caps={"wide": 2}, end=last + 1)
    with pytest.raises(UserError, match="an epoch cap is given for wudao, which is no stream"):
        make_sampler(streams, epoch_caps={"wudao": 2}, end=400)
    with pytest.raises(ValueError, match="epoch_caps need `end`"):
        make_sampler(streams, epoch_caps={"wide": 2})


def test_what_does_not_fit(streams: list[Stream], make_stream: Make) -> None:
    with pytest.raises(UserError, match=r"these are \[\]"):
        make_sampler([])
    with pytest.raises(
        UserError, match=r"there must be streams, and each must hold tokens.*'none'"
    ):
        make_sampler([*streams, make_stream("none", [0, 0])])
    with pytest.raises(UserError, match="given twice: one; give them once"):
        make_sampler([*streams, make_stream("one", [5])])
    with pytest.raises(UserError, match=r"3 scatters do not fit: stream wide has 8 shards"):
        make_sampler(streams, num_scatters=3)
    with pytest.raises(UserError, match="a weight is given for wudao"):
        make_sampler(streams, stages=[MixtureStage(start=0, weights={"wudao": 1})])
    with pytest.raises(ValueError, match="position -5 is negative"):
        make_sampler(streams).draw([-5])
