"""Weights that change at given positions, and the stream that each position draws."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shards.commands.spelling import expected
from shards.errors import UserError
from shards.sampling.mixture_schedule import MixtureSchedule
from shards.sampling.permutation import Integers


@dataclass(frozen=True, kw_only=True)
class MixtureStage:
    """The weights of the streams, beginning at a position."""

    start: int
    """The first position."""
    weights: Mapping[str, float]
    """The weights by stream name, in any unit; streams without a weight are not drawn."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _StageDraws:
    """The draws of one stage, whose numbers continue those of earlier stages."""

    start: int
    """The first position."""
    schedule: MixtureSchedule
    first: Integers
    """int64[scatters]: the number of draws of each scatter before the stage."""
    before: Integers
    """int64[scatters, streams]: how often each scatter drew each stream before the stage."""

    def counts(self, draws: Integers, scatters: Integers) -> Integers:
        """Return int64[n, streams]: how often a scatter drew each stream before each given draw."""
        return self.before[scatters] + self.schedule.counts(draws - self.first[scatters], scatters)

    def stream_and_nth(self, draws: Integers, scatters: Integers) -> tuple[Integers, Integers]:
        """Return each draw's stream, and how many earlier draws in the scatter had the same one."""
        streams, nth = self.schedule.stream_and_nth(draws - self.first[scatters], scatters)
        return streams, nth + self.before[scatters, streams]


class StageSchedule:
    """Finds the stream of every position over all stages.

    Position p is draw p div S of scatter p mod S.
    """

    def __init__(
        self, stages: Sequence[MixtureStage], names: Sequence[str], *, num_scatters: int, seed: int
    ) -> None:
        """Make the tables of the streams with these names.

        Raises:
            UserError: the stages do not start at 0 and ascend, a weight names no stream, or the
                weights of a stage cannot be drawn.
        """
        _check(stages, names)
        self.num_scatters = num_scatters
        self._names = names
        scatters = np.arange(num_scatters)
        scheduled: list[_StageDraws] = []
        for stage in stages:
            weights = [stage.weights.get(name, 0) for name in names]
            first = self._draws_before(stage.start, scatters)
            zeros = np.zeros((num_scatters, len(names)), np.int64)
            scheduled.append(
                _StageDraws(
                    start=stage.start,
                    schedule=MixtureSchedule(weights, num_scatters, seed=seed),
                    first=first,
                    before=scheduled[-1].counts(first, scatters) if scheduled else zeros,
                )
            )
        self._stages = tuple(scheduled)
        self._starts = np.array([stage.start for stage in stages])

    def stream_and_nth(self, positions: ArrayLike) -> tuple[Integers, Integers, Integers]:
        """Return each position's stream and scatter, and how often both occurred together before.

        Raises:
            ValueError: a position is negative.
        """
        array = np.atleast_1d(np.asarray(positions, np.int64))
        if array.size and array.min() < 0:
            raise ValueError(f"position {array.min()} is negative")
        draws, scatters = np.divmod(array, self.num_scatters)
        stages = np.searchsorted(self._starts, array, side="right") - 1
        streams, nth = np.empty_like(draws), np.empty_like(draws)
        for stage in np.unique(stages):
            rows = stages == stage
            streams[rows], nth[rows] = self._stages[stage].stream_and_nth(
                draws[rows], scatters[rows]
            )
        return streams, scatters, nth

    def counts_until(self, position: int) -> Integers:
        """Return int64[scatters, streams]: the number of draws before a position."""
        scatters = np.arange(self.num_scatters)
        stage = self._stages[np.searchsorted(self._starts, position, side="right") - 1]
        return stage.counts(self._draws_before(position, scatters), scatters)

    def position_of(self, stream: int, nth: int, scatter: int) -> int | None:
        """Return the position of draw `nth` of a stream in a scatter; None if no stage has it."""
        for stage, following in zip(self._stages, (*self._stages[1:], None), strict=True):
            before = int(stage.before[scatter, stream])
            if stage.schedule.draws_per_period[stream] and (
                following is None or nth < following.before[scatter, stream]
            ):
                draw = stage.schedule.draw_of(stream, nth - before, scatter)
                return (draw + int(stage.first[scatter])) * self.num_scatters + scatter
        return None

    def history(self, position: int) -> list[dict[str, Any]]:
        """Return, for JSON, the first stage and all others that draws before a position need."""
        return [
            {
                "start": stage.start,
                "draws": {
                    name: int(draws)
                    for name, draws in zip(
                        self._names, stage.schedule.draws_per_period, strict=True
                    )
                    if draws
                },
            }
            for stage in self._stages
            if stage.start == 0 or stage.start < position
        ]

    def _draws_before(self, position: int, scatters: Integers) -> Integers:
        return (position - scatters + self.num_scatters - 1) // self.num_scatters


def _check(stages: Sequence[MixtureStage], names: Sequence[str]) -> None:
    starts = [stage.start for stage in stages]
    if starts[:1] != [0] or any(start >= following for start, following in pairwise(starts)):
        raise UserError(
            f"stages start at positions {starts}: the first must start at 0, and each later than "
            "the one before"
        )
    for stage in stages:
        what = f"in the stage at position {stage.start:,} a weight"
        check_stream_names(stage.weights, names, what=what)


def check_stream_names(values: Mapping[str, float], names: Sequence[str], *, what: str) -> None:
    """Check that values are given for existing streams only; `what` names the values in errors.

    Raises:
        UserError: a name is not among `names`.
    """
    if unknown := sorted(set(values) - set(names)):
        raise UserError(
            f"{what} is given for {', '.join(unknown)}, which is not a stream with text: "
            f"{expected(unknown[0], names)}"
        )
