"""Weights that change at given positions, and what is drawn under them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shards.errors import UserError
from shards.order.quotas import Quotas

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class MixtureStage:
    """The weights of the streams from a position on."""

    start: int
    """The first position."""
    weights: Mapping[str, float]
    """By name of the stream, in any unit; streams without a weight are not drawn."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Leg:
    """A stage with its tables."""

    start: int
    quotas: Quotas
    first: Integers
    """[scatters]: draws of each scatter before the stage."""
    before: Integers
    """[scatters, streams]: how often each scatter drew each stream before the stage."""

    def counts(self, draws: Integers, scatters: Integers) -> Integers:
        """Return int64[n, streams]: how often each stream was drawn before a draw of the stage."""
        return self.before[scatters] + self.quotas.counts(draws - self.first[scatters], scatters)

    def numbered(self, draws: Integers, scatters: Integers) -> tuple[Integers, Integers]:
        """Return the stream of each draw, and how often its scatter drew that stream before."""
        streams, nth = self.quotas.numbered(draws - self.first[scatters], scatters)
        return streams, nth + self.before[scatters, streams]


class Stages:
    """The stream of every position, through all stages.

    Position p is draw p div S of scatter p mod S.
    """

    def __init__(
        self, stages: Sequence[MixtureStage], names: Sequence[str], *, num_scatters: int, seed: int
    ) -> None:
        """Make the tables.

        Raises:
            UserError: the first stage does not start at 0, they are not in order, a weight is of no
                stream, or the weights are none.
        """
        _check(stages, names)
        self.num_scatters = num_scatters
        self._names = names
        scatters = np.arange(num_scatters)
        legs: list[_Leg] = []
        for stage in stages:
            weights = [stage.weights.get(name, 0) for name in names]
            first = self._draws_before(stage.start, scatters)
            none = np.zeros((num_scatters, len(names)), np.int64)
            legs.append(
                _Leg(
                    start=stage.start,
                    quotas=Quotas(weights, num_scatters, seed=seed),
                    first=first,
                    before=legs[-1].counts(first, scatters) if legs else none,
                )
            )
        self._legs = tuple(legs)
        self._starts = np.array([leg.start for leg in legs])

    def numbered(self, positions: ArrayLike) -> tuple[Integers, Integers, Integers]:
        """Return stream and scatter of each position, and how often that was drawn before."""
        draws, scatters, legs = self._split(positions)
        streams, nth = np.empty_like(draws), np.empty_like(draws)
        for leg in np.unique(legs):
            here = legs == leg
            streams[here], nth[here] = self._legs[leg].numbered(draws[here], scatters[here])
        return streams, scatters, nth

    def counts(self, positions: ArrayLike) -> Integers:
        """Return int64[n, streams]: draws before each position in the scatter of that position."""
        draws, scatters, legs = self._split(positions)
        result = np.empty((len(draws), len(self._names)), np.int64)
        for leg in np.unique(legs):
            here = legs == leg
            result[here] = self._legs[leg].counts(draws[here], scatters[here])
        return result

    def counts_until(self, position: int) -> Integers:
        """Return int64[scatters, streams]: draws of each scatter before a position."""
        scatters = np.arange(self.num_scatters)
        leg = self._legs[np.searchsorted(self._starts, position, side="right") - 1]
        return leg.counts(self._draws_before(position, scatters), scatters)

    def position_of(self, stream: int, nth: int, scatter: int) -> int | None:
        """Return the position at which `numbered` gives this, None if no stage gets so far."""
        for leg, following in zip(self._legs, (*self._legs[1:], None), strict=True):
            before = int(leg.before[scatter, stream])
            if leg.quotas.draws[stream] and (
                following is None or nth < following.before[scatter, stream]
            ):
                draw = leg.quotas.draw_of(stream, nth - before, scatter) + int(leg.first[scatter])
                return draw * self.num_scatters + scatter
        return None

    def history(self, position: int) -> list[dict[str, Any]]:
        """Return the stages that positions before this one depend on, and the first, as JSON."""
        return [
            {
                "start": leg.start,
                "draws": {
                    name: int(draws)
                    for name, draws in zip(self._names, leg.quotas.draws, strict=True)
                    if draws
                },
            }
            for leg in self._legs
            if leg.start == 0 or leg.start < position
        ]

    def _split(self, positions: ArrayLike) -> tuple[Integers, Integers, Integers]:
        places = np.atleast_1d(np.asarray(positions, np.int64))
        if places.size and places.min() < 0:
            raise ValueError(f"position {places.min()} is negative")
        draws, scatters = np.divmod(places, self.num_scatters)
        return draws, scatters, np.searchsorted(self._starts, places, side="right") - 1

    def _draws_before(self, position: int, scatters: Integers) -> Integers:
        return (position - scatters + self.num_scatters - 1) // self.num_scatters


def saved_stages(history: Sequence[Mapping[str, Any]]) -> tuple[MixtureStage, ...]:
    """Return the stages that `Stages.history` gave; further ones may be added to them."""
    return tuple(MixtureStage(start=part["start"], weights=part["draws"]) for part in history)


def _check(stages: Sequence[MixtureStage], names: Sequence[str]) -> None:
    starts = [stage.start for stage in stages]
    if starts[:1] != [0] or any(a >= b for a, b in pairwise(starts)):
        raise UserError(
            f"stages start at positions {starts}: the first must start at 0, each later than the "
            "one before"
        )
    for stage in stages:
        check_names(stage.weights, names, what=f"in the stage at position {stage.start:,} a weight")


def check_names(given: Mapping[str, float], names: Sequence[str], *, what: str) -> None:
    """Check that numbers are given for streams that exist.

    Raises:
        UserError: one is not.
    """
    if unknown := sorted(set(given) - set(names)):
        raise UserError(
            f"{what} is given for {', '.join(unknown)}, which is no stream with text; the streams "
            f"are {', '.join(names)}"
        )
