from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.sampling.mixture_schedule import (
    MAX_PERIOD,
    MixtureSchedule,
    draws_of_all,
    draws_per_period,
)


@pytest.mark.parametrize(
    ("weights", "draws"),
    [
        ([1], [1]),
        ([0.7, 0.3], [7, 3]),
        ([0.1, 0.2, 0.7], [1, 2, 7]),
        ([1 / 3, 2 / 3], [1, 2]),
        ([3_000_000, 0, 1_000_000], [3, 0, 1]),
        ([1e-9, 1e-9], [1, 1]),
        ([100_000, 1], [65535, 1]),
        ([0.1234567, 0.3456789, 0.5308644], [8091, 22654, 34791]),
    ],
)
def test_golden_draws_per_period(weights: list[float], draws: list[int]) -> None:
    assert draws_per_period(weights).tolist() == draws


def errors(schedule: MixtureSchedule, scatter: int, draws: int) -> float:
    """Return the largest |drawn - t·w| of any stream before draw t, t up to `draws`."""
    times = np.arange(draws + 1)
    counts = schedule.counts(times, np.full(draws + 1, scatter))
    share = schedule.draws_per_period / schedule.period
    return float(np.abs(counts - times[:, None] * share).max())


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40).filter(any), st.integers(0, 99))
def test_shares_hold_for_any_weights(weights: list[int], seed: int) -> None:
    schedule = MixtureSchedule(weights, 3, seed=seed)
    for scatter in range(3):
        assert errors(schedule, scatter, min(2 * schedule.period, 500)) < 2
    streams, _ = schedule.stream_and_nth(
        np.arange(schedule.period), np.zeros(schedule.period, np.int64)
    )
    assert (
        np.bincount(streams, minlength=len(weights)).tolist() == schedule.draws_per_period.tolist()
    )


@given(
    st.lists(st.fractions(0, 10**9, max_denominator=1000), min_size=1, max_size=30).filter(any),
    st.sampled_from([2**7, 2**12, MAX_PERIOD]),
)
def test_every_weight_has_a_draw(weights: list[Fraction], period: int) -> None:
    draws = draws_of_all(weights, period=period)
    assert 0 < sum(draws) <= period
    assert [bool(count) for count in draws] == [bool(weight) for weight in weights]
    raised = sum(weights) * 2 / period
    for weight, count in zip(weights, draws, strict=True):
        if weight >= raised:
            exact = weight / sum(weights)
            assert count / sum(draws) <= exact + 1 / period
            assert count / sum(draws) >= exact / (1 + 2 * len(weights) / period) - 1 / period
