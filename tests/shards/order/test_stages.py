import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.errors import UserError
from shards.order.stages import MixtureStage, StageSchedule

NAMES = ["a", "b", "c"]
STAGES = (
    MixtureStage(start=0, weights={"a": 7, "b": 3}),
    MixtureStage(start=1003, weights={"a": 0.5, "c": 0.5}),
    MixtureStage(start=5000, weights={"c": 1}),
)


def make_schedule(
    stages: tuple[MixtureStage, ...] = STAGES, *, num_scatters: int = 8
) -> StageSchedule:
    return StageSchedule(stages, NAMES, num_scatters=num_scatters, seed=1)


@pytest.mark.parametrize("num_scatters", [1, 3, 8, 64])
def test_draws_are_numbered_without_a_gap(num_scatters: int) -> None:
    """Through all stages, each scatter draws each stream for the 0th, 1st, 2nd … time."""
    schedule = make_schedule(num_scatters=num_scatters)
    positions = np.arange(8000)
    streams, scatters, nth = schedule.stream_and_nth(positions)
    assert np.array_equal(scatters, positions % num_scatters)
    for scatter in range(num_scatters):
        for stream in range(3):
            own = nth[(scatters == scatter) & (streams == stream)]
            assert own.tolist() == list(range(len(own)))
    counts = schedule.counts(positions)
    assert np.array_equal(counts[positions, streams], nth)
    until = schedule.counts_until(8000)
    assert until.sum() == 8000
    assert until.sum(axis=0).tolist() == np.bincount(streams, minlength=3).tolist()


def test_the_past_does_not_know_the_future() -> None:
    positions = np.arange(1003)
    now = make_schedule().stream_and_nth(positions)
    before = make_schedule(STAGES[:1]).stream_and_nth(positions)
    for ours, theirs in zip(now, before, strict=True):
        assert np.array_equal(ours, theirs)


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=20))
def test_back_to_the_position(positions: list[int]) -> None:
    schedule = make_schedule()
    for position, *row in zip(positions, *schedule.stream_and_nth(positions), strict=True):
        stream, scatter, nth = map(int, row)
        assert schedule.position_of(stream, nth, scatter) == position


def test_draws_that_never_come() -> None:
    schedule = make_schedule()
    drawn = int(schedule.counts_until(5000)[2, 1])
    assert schedule.position_of(1, drawn - 1, 2) is not None
    assert schedule.position_of(1, drawn, 2) is None


@pytest.mark.parametrize(("position", "num"), [(0, 1), (1003, 1), (1004, 2), (5000, 2), (5001, 3)])
def test_history_is_what_was_used(position: int, num: int) -> None:
    assert len(make_schedule().history(position)) == num


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ([], r"positions \[\]"),
        ([(5, {"a": 1})], r"positions \[5\]: the first must start at 0"),
        ([(0, {"a": 1}), (9, {"a": 1}), (9, {"b": 1})], "each later than the one before"),
        ([(0, {"a": 1}), (9, {"d": 1})], "stage at position 9 a weight is given for d, .* a, b, c"),
        ([(0, {"a": 0})], "at least one more than 0"),
    ],
)
def test_stages_that_cannot_be(schedule: list[tuple[int, dict[str, float]]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make_schedule(
            tuple(MixtureStage(start=start, weights=weights) for start, weights in schedule)
        )
