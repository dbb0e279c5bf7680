"""In which order streams are drawn, so that each has its share at any moment.

The k-th draw from a stream of share w may not come before draw floor(k / w) nor after draw
ceil((k + 1) / w) - 1; of all that may come, the one with the earliest deadline does. That keeps
every stream within one draw of its share (the chairman assignment problem: Tijdeman, Discrete
Mathematics 32, 1980; as schedule: Baruah et al., "Proportionate progress", Algorithmica 15, 1996).
Shares are whole draws per period, so one period in a table answers for every draw. Each scatter
starts somewhere else in it: else a batch with one draw a scatter would be all of one stream.
"""

import heapq
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shards.errors import UserError
from shards.order.permutation import derive, text_key

Counts = NDArray[np.int64]

MAX_PERIOD = 2**16
"""Draws in the longest period: the finest share is one in so many."""


def shares(weights: Sequence[float]) -> Counts:
    """Return draws per period for weights in any unit, exact where a period can hold them.

    Weights are taken as the decimals they are written as. Where their common denominator is too
    large for a period of 2^16, every share is rounded so that the sum stays (largest remainders).

    Raises:
        UserError: a weight is negative or no number, all are 0, or a share rounds to nothing.
    """
    if not all(math.isfinite(w) and w >= 0 for w in weights) or not any(weights):
        raise UserError(
            f"weights must be 0 or more, and one of them more than 0; these are {list(weights)}"
        )
    exact = [Fraction(str(weight)) for weight in weights]
    scale = math.lcm(*(part.denominator for part in exact))
    whole = [int(part * scale) for part in exact]
    divisor = math.gcd(*whole)
    if sum(whole) // divisor <= MAX_PERIOD:
        return np.array([part // divisor for part in whole], np.int64)
    return _rounded(whole)


def _rounded(weights: Sequence[int]) -> Counts:
    total = sum(weights)
    result = [weight * MAX_PERIOD // total for weight in weights]
    remainders = [weight * MAX_PERIOD % total for weight in weights]
    order = sorted(range(len(weights)), key=lambda i: (-remainders[i], i))
    for i in order[: MAX_PERIOD - sum(result)]:
        result[i] += 1
    for i, (weight, draws) in enumerate(zip(weights, result, strict=True)):
        if weight and not draws:
            raise UserError(
                f"weight {i + 1} of {len(weights)} is {weight / total:.2g} of all weights; the "
                f"smallest share that can be drawn is {1 / MAX_PERIOD:.2g} (1 in {MAX_PERIOD:,}). "
                "Weigh it more, or leave it out with weight 0."
            )
    return np.array(result, np.int64)


class Quotas:
    """The draws of every scatter, for one set of weights."""

    def __init__(self, weights: Sequence[float], num_scatters: int, *, seed: int = 0) -> None:
        self.draws = shares(weights)
        """int64[streams]: draws of each stream in a period."""
        self.period = int(self.draws.sum())
        """Draws in a period."""
        self.schedule = _schedule(self.draws)
        """int64[period]: the stream of each draw of a period."""
        # Slots of the period by stream, and where each stream's begin: the inverse of the table.
        self._slots = np.argsort(self.schedule, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(self.draws)])
        self._nth = np.empty(self.period, np.int64)
        self._nth[self._slots] = np.arange(self.period) - self._starts[self.schedule[self._slots]]
        keys = derive(np.array([text_key(seed, "quotas")], np.uint64), np.arange(num_scatters))
        self._phases = (keys % np.uint64(self.period)).astype(np.int64)
        self._before = self._passed(self._phases)

    def numbered(self, draws: Counts, scatters: Counts) -> tuple[Counts, Counts]:
        """Return the stream of each draw, and how often its scatter drew that stream before."""
        laps, slots = np.divmod(draws + self._phases[scatters], self.period)
        streams = self.schedule[slots]
        nth = laps * self.draws[streams] + self._nth[slots] - self._before[scatters, streams]
        return streams, nth

    def counts(self, draws: Counts, scatters: Counts) -> Counts:
        """Return int64[n, streams]: how often a scatter drew each stream before a draw of it."""
        laps, slots = np.divmod(draws + self._phases[scatters], self.period)
        return laps[:, None] * self.draws + self._passed(slots) - self._before[scatters]

    def draw_of(self, stream: int, nth: int, scatter: int) -> int:
        """Return the draw for which `numbered` gives (stream, nth); the stream has a share."""
        laps, rest = divmod(nth + int(self._before[scatter, stream]), int(self.draws[stream]))
        slot = int(self._slots[self._starts[stream] + rest])
        return laps * self.period + slot - int(self._phases[scatter])

    def _passed(self, slots: Counts) -> Counts:
        """Return int64[n, streams]: draws of each stream in the period before each slot."""
        result = np.empty((len(slots), len(self.draws)), np.int64)
        for stream, (start, count) in enumerate(zip(self._starts, self.draws, strict=False)):
            result[:, stream] = np.searchsorted(self._slots[start : start + count], slots)
        return result


def _schedule(draws: Counts) -> Counts:
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
