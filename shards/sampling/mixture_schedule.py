"""Orders the draws from streams so that each stream has its share at any moment.

The k-th draw from a stream of share w comes no earlier than draw floor(k / w) and no later than
draw ceil((k + 1) / w) - 1; of the allowed draws, the one with the earliest deadline comes next.
That keeps every stream within one draw of its share (the chairman assignment problem: Tijdeman,
Discrete Mathematics 32, 1980; as a schedule: Baruah et al., "Proportionate progress", Algorithmica
15, 1996). Shares are whole numbers of draws per period, so the table of one period gives every
draw. Each scatter starts at a different slot of the table; otherwise a batch with one draw per
scatter would come from a single stream.
"""

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from shards.errors import UserError
from shards.sampling.permutation import Integers, derive, text_key

MAX_PERIOD = 2**16
"""The maximum number of draws in a period; no share can be smaller than 1 / MAX_PERIOD."""


def draws_per_period(weights: Sequence[float]) -> Integers:
    """Return int64[streams]: the number of draws per period for each weight, exact if possible.

    Weights have any unit and are read as exact decimal numbers. If their common denominator is too
    large for a period of 2^16, the shares are rounded by largest remainders, which keeps the sum.

    Raises:
        UserError: a weight is negative or not a number, all are 0, or a share rounds to 0.
    """
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
        raise UserError(
            f"weights must be 0 or more, and at least one must be above 0, not {list(weights)}"
        )
    whole = _whole([Fraction(str(weight)) for weight in weights])
    result = _exact(whole, MAX_PERIOD) or _rounded(whole, MAX_PERIOD)
    for i, (weight, draws) in enumerate(zip(whole, result, strict=True)):
        if weight and not draws:
            raise UserError(
                f"weight {i + 1} of {len(weights)} is {weight / sum(whole):.2g} of all weights; "
                f"the smallest share that can be drawn is {1 / MAX_PERIOD:.2g} (1 in "
                f"{MAX_PERIOD:,}). Increase it, or set it to 0 to leave the stream out."
            )
    return np.array(result, np.int64)


def draws_of_all(weights: Sequence[Fraction], *, period: int) -> list[int]:
    """Return the number of draws per period for each weight, at least one for a weight above 0.

    The draws are exact if they fit into a period; otherwise shares below 2 per period are raised to
    2, and all shares are rounded.

    Args:
        weights: the weights, of which at least one is above 0.
        period: the maximum number of draws in a period, up to 2^16, and at least 4 times the number
            of weights.
    """
    whole = _whole(weights)
    least = -(-2 * sum(whole) // period)
    raised = [weight and max(weight, least) for weight in whole]
    return _exact(whole, period) or _rounded(raised, period)


def _whole(weights: Sequence[Fraction]) -> list[int]:
    """Return whole numbers in the same ratios as the weights."""
    scale = math.lcm(*(weight.denominator for weight in weights))
    return [int(weight * scale) for weight in weights]


def _exact(weights: Sequence[int], period: int) -> list[int] | None:
    """Return the smallest whole draws in the weights' ratios; None if the sum exceeds a period."""
    divisor = math.gcd(*weights)
    return [weight // divisor for weight in weights] if sum(weights) <= period * divisor else None


def _rounded(weights: Sequence[int], period: int) -> list[int]:
    """Return numbers of draws that add up to the period; the largest remainders are rounded up."""
    total = sum(weights)
    result = [weight * period // total for weight in weights]
    remainders = [weight * period % total for weight in weights]
    order = sorted(range(len(weights)), key=lambda i: (-remainders[i], i))
    for i in order[: period - sum(result)]:
        result[i] += 1
    return result


class MixtureSchedule:
    """The draws of every scatter under one set of weights."""

    def __init__(self, weights: Sequence[float], num_scatters: int, *, seed: int = 0) -> None:
        self.draws_per_period = draws_per_period(weights)
        """int64[streams]: the number of draws of each stream in a period."""
        self.period = int(self.draws_per_period.sum())
        """The number of draws in a period."""
        self.schedule = _schedule(self.draws_per_period)
        """int64[period]: the stream of each draw of a period."""
        # The inverse of the table: slots of the period by stream, and where those of each stream
        # begin.
        self._slots = np.argsort(self.schedule, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(self.draws_per_period)])
        self._nth = np.empty(self.period, np.int64)
        self._nth[self._slots] = np.arange(self.period) - self._starts[self.schedule[self._slots]]
        keys = derive(np.array([text_key(seed, "quotas")], np.uint64), np.arange(num_scatters))
        self._phases = (keys % np.uint64(self.period)).astype(np.int64)
        self._before = self._draws_before(self._phases)

    def stream_and_nth(self, draws: Integers, scatters: Integers) -> tuple[Integers, Integers]:
        """Return each draw's stream, and how many earlier draws in the scatter had the same one."""
        laps, slots = np.divmod(draws + self._phases[scatters], self.period)
        streams = self.schedule[slots]
        nth = (
            laps * self.draws_per_period[streams]
            + self._nth[slots]
            - self._before[scatters, streams]
        )
        return streams, nth

    def counts(self, draws: Integers, scatters: Integers) -> Integers:
        """Return int64[n, streams]: how often a scatter drew each stream before each given draw."""
        laps, slots = np.divmod(draws + self._phases[scatters], self.period)
        full_periods = laps[:, None] * self.draws_per_period
        return full_periods + self._draws_before(slots) - self._before[scatters]

    def draw_of(self, stream: int, nth: int, scatter: int) -> int:
        """Return the number of the draw that is draw `nth` of a stream, which must have a share."""
        nth_overall = nth + int(self._before[scatter, stream])
        laps, rest = divmod(nth_overall, int(self.draws_per_period[stream]))
        slot = int(self._slots[self._starts[stream] + rest])
        return laps * self.period + slot - int(self._phases[scatter])

    def _draws_before(self, slots: Integers) -> Integers:
        """Return int64[n, streams]: how often a period draws each stream before each slot."""
        result = np.zeros((len(slots), len(self.draws_per_period)), np.int64)
        # If a run follows a growing dataset, its early stages draw few of the later streams.
        for stream in np.flatnonzero(self.draws_per_period).tolist():
            start, end = self._starts[stream : stream + 2]
            result[:, stream] = np.searchsorted(self._slots[start:end], slots)
        return result


def _schedule(draws: Integers) -> Integers:
    """Return int64[period]: the stream of each draw of a period, earliest deadline first."""
    period = int(draws.sum())
    released: list[list[tuple[int, int, int]]] = [[] for _ in range(period)]
    for stream, count in enumerate(draws.tolist()):
        if count:
            released[0].append((-(-period // count), stream, 1))
    ready: list[tuple[int, int, int]] = []
    table = np.empty(period, np.int64)
    for slot in range(period):
        for job in released[slot]:
            heapq.heappush(ready, job)
        _, stream, nth = heapq.heappop(ready)
        table[slot] = stream
        count = int(draws[stream])
        if nth < count:
            release = max(slot + 1, nth * period // count)
            released[release].append((-(-(nth + 1) * period // count), stream, nth + 1))
    return table
