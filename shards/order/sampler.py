"""Which window is trained on at which position: a pure function of the seed.

A position is the number of samples before a sample: those consumed, plus its slot in the batch.

    position p ─┬─ p mod S ─▶ scatter ─┐
                └─ p div S ─▶ draw ────┴─▶ quotas ─▶ stream, how often it was drawn before: k
    k ─▶ epoch, index = divmod(k, windows of the stream in the scatter) ─▶ permutation ─▶ sample
    sample ─▶ shard, window of the shard

The k-th draw of scatter c from a common stream is draw k·S + c of the stream. There is nothing to
build or to keep: the state is the position, with what the positions before it depended on.
"""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shards.errors import UserError
from shards.order.cells import Cells
from shards.order.permutation import (
    Words,
    derive,
    mix,
    permutation_key,
    permute,
    text_key,
    unpermute,
)
from shards.order.stages import Integers, MixtureStage, Stages, check_names
from shards.order.streams import Stream, check_scatters
from shards.storage.files import canonical
from shards.windows import WindowSpec

Indices = NDArray[np.int32] | Integers

_VERSION = 1
_FOREVER = 2**62
"""Beyond any position and any sample."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """What is drawn at some positions."""

    stream: NDArray[np.int32]
    """Index into the sampler's streams."""
    scatter: NDArray[np.int32]
    epoch: Integers
    """Of the stream in the scatter; of the stream, if it is common."""
    sample: Integers
    """The window's number in the stream's part of the scatter; in the stream, if it is common."""

    def __len__(self) -> int:
        return len(self.stream)


class Places(NamedTuple):
    """Where drawn windows are."""

    shard: Integers
    """Index into the shards of the stream."""
    window: Integers
    """Number in the shard."""
    phase: Integers
    """How far the epoch shifts the grid of windows, in [0, stride); 0 in epoch 0."""


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws windows of streams.

    Raises:
        UserError: the scatters, stages, weights or caps do not fit the streams; at construction.
    """

    streams: Sequence[Stream]
    _: KW_ONLY
    seed: int
    num_scatters: int
    window: WindowSpec
    stages: Sequence[MixtureStage] = ()
    """By start, the first at 0. Without stages a stream weighs its number of windows."""
    epoch_caps: Mapping[str, float] = field(default_factory=dict)
    """How often the windows of a stream may be seen until `end`, by name."""
    end: int | None = None
    """The position after the last one; needed for caps only."""

    def __post_init__(self) -> None:
        names = self._names
        if not names or not all(stream.num_tokens for stream in self.streams):
            raise UserError(f"streams must hold tokens, and there must be one or more: {names}")
        if twice := [name for name, times in Counter(names).items() if times > 1]:
            raise UserError(f"the same data are given twice: {', '.join(twice)}; give them once")
        check_scatters(self.streams, self.num_scatters)
        check_names(self.epoch_caps, names, what="an epoch cap")
        self._stages.history(0)  # weights that cannot be are told of now, not at the first draw
        if self.epoch_caps:
            self._check_caps()

    @cached_property
    def cells(self) -> Cells:
        """Where the windows are."""
        return Cells(self.streams, num_scatters=self.num_scatters, stride=self.window.stride)

    @cached_property
    def _names(self) -> list[str]:
        return [stream.name for stream in self.streams]

    @cached_property
    def _stages(self) -> Stages:
        every = MixtureStage(
            start=0, weights=dict(zip(self._names, self.cells.totals, strict=True))
        )
        return Stages(
            self.stages or (every,), self._names, num_scatters=self.num_scatters, seed=self.seed
        )

    @cached_property
    def _keys(self) -> Words:
        return np.array([text_key(self.seed, name) for name in self._names], np.uint64)

    def draw(self, positions: ArrayLike) -> Draws:
        """Return what is drawn at each position, int64[n], in any order."""
        streams, scatters, nth = self._stages.numbered(positions)
        cells = self.cells.of(streams, scatters)
        nth = np.where(self.cells.common[streams], nth * self.num_scatters + scatters, nth)
        sizes = self.cells.sizes[cells]
        epochs, indices = np.divmod(nth, sizes)
        samples = permute(indices, sizes, self._epoch_keys(streams, scatters, epochs))
        return Draws(
            stream=streams.astype(np.int32),
            scatter=scatters.astype(np.int32),
            epoch=epochs,
            sample=samples.astype(np.int64),
        )

    def locate(self, draws: Draws) -> Places:
        """Return where the drawn windows are."""
        cells = self.cells.of(draws.stream, draws.scatter)
        shards, windows = self.cells.locate(cells, draws.stream, draws.sample)
        return Places(shards, windows, self._phases(draws.stream, draws.scatter, draws.epoch))

    def keys(self, draws: Draws) -> Words:
        """Return uint64[n]: a hash of each sample and epoch, for what else is random about it."""
        keys = self._epoch_keys(draws.stream, draws.scatter, draws.epoch)
        return derive(mix(~keys), draws.sample)

    def position_of(self, stream: int, *, shard: int, window: int, epoch: int) -> int | None:
        """Return the position of a window in an epoch, None if the weights never get there."""
        cell, scatter, sample = self.cells.sample(stream, shard, window)
        size = int(self.cells.sizes[cell])
        key = permutation_key(self.seed, self._names[stream], scatter, epoch)
        nth = epoch * size + int(unpermute(sample, size, key)[0])
        if self.cells.common[stream]:
            nth, scatter = divmod(nth, self.num_scatters)
        return self._stages.position_of(stream, nth, scatter)

    def phase_of(self, stream: int, *, shard: int, epoch: int) -> int:
        """Return the phase of a shard's windows in an epoch, as `locate` gives it."""
        scatter = np.array([shard % self.num_scatters])
        return int(self._phases(np.array([stream]), scatter, np.array([epoch]))[0])

    def counts(self, positions: ArrayLike) -> Integers:
        """Return int64[n, streams]: draws before each position in the scatter of that position."""
        return self._stages.counts(positions)

    def epochs(self, position: int) -> NDArray[np.float64]:
        """Return how many epochs of each stream were drawn before a position, at most of a scatter.

        The scatters differ: their parts of a stream are not equally large.
        """
        counts = self._stages.counts_until(position)
        scatters = np.arange(self.num_scatters)[:, None]
        last = np.where(self.cells.common, (counts - 1) * self.num_scatters + scatters, counts - 1)
        cells = self.cells.of(np.arange(len(self.streams)), scatters)
        drawn = np.where(counts > 0, last + 1, 0)
        return np.asarray((drawn / self.cells.sizes[cells]).max(axis=0), np.float64)

    def state_dict(self, position: int) -> dict[str, Any]:
        """Return, for JSON, a position and what everything drawn before it depended on."""
        history = self._stages.history(position)
        used = {name for stage in history for name in stage["draws"]}
        return {
            "version": _VERSION,
            "position": position,
            "seed": self.seed,
            "num_scatters": self.num_scatters,
            "window": asdict(self.window),
            "stages": history,
            "shards": {each.name: _digest(each) for each in self.streams if each.name in used},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> int:
        """Return the position of a state that this sampler goes on from.

        It may have more streams, and other weights from that position on.

        Raises:
            UserError: up to that position this sampler would have drawn something else.
        """
        position = int(state["position"])
        mine = self.state_dict(position)
        for name in ("version", "seed", "num_scatters", "window", "stages", "shards"):
            if state[name] != mine[name]:
                raise UserError(
                    f"this run cannot go on from the saved one at position {position:,}: {name} "
                    f"was {state[name]}, now it is {mine[name]}. Set it as it was (new data and "
                    f"new weights as a further stage from {position:,} on), or start a new run."
                )
        return position

    @property
    def identity(self) -> str:
        """A hash of everything that draws depend on, all stages among it."""
        state = self.state_dict(_FOREVER)
        return hashlib.sha256(canonical(state)).hexdigest()

    def _epoch_keys(self, streams: Indices, scatters: Indices, epochs: Integers) -> Words:
        """Return the `permutation_key` of each draw's epoch."""
        own = np.where(self.cells.common[streams], 0, scatters)
        return derive(derive(self._keys[streams], own), epochs)

    def _phases(self, streams: Indices, scatters: Indices, epochs: Integers) -> Integers:
        keys = derive(mix(~self._epoch_keys(streams, scatters, epochs)), _FOREVER)
        phases = (keys % np.uint64(self.window.stride)).astype(np.int64)
        return np.where(epochs == 0, 0, phases)

    def _check_caps(self) -> None:
        if self.end is None:
            raise ValueError("epoch_caps need `end`, the position after the last one")
        caps = np.array([self.epoch_caps.get(name, np.inf) for name in self._names])
        epochs = self.epochs(self.end)
        if (epochs <= caps).all():
            return
        fits = bisect_left(
            range(self.end), x=True, key=lambda end: bool((self.epochs(end + 1) > caps).any())
        )
        stream = int(np.argmax(epochs > caps))
        raise UserError(
            f"stream {self._names[stream]} would be seen {epochs[stream]:.4g} times by position "
            f"{self.end:,}, its cap is {caps[stream]:g}. End at position {fits:,}, the last at "
            "which all caps hold, weigh it less, or raise its cap."
        )


def _digest(stream: Stream) -> str:
    """Return what tells streams of one name apart: how they are cut into shards."""
    tokens = np.array([shard.tokens for shard in stream.shards], "<i8")
    return hashlib.sha256(tokens.tobytes()).hexdigest()[:16]
