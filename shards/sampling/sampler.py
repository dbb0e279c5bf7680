"""Decides the window that is trained on at each position: a pure function of the seed.

The position of a sample is the number of samples before it: those of earlier batches, plus its slot
in the batch.

    position p ─┬─ p mod S ─▶ scatter ─┐
                └─ p div S ─▶ draw ────┴─▶ schedule ─▶ stream, how often drawn before: k
    k ─▶ epoch, rest = divmod(k, windows of the stream in the scatter) ─▶ permutation ─▶ index
    index ─▶ shard, window of the shard

A stream with fewer shards than scatters is common: every node has all of it, and the k-th draw of
scatter c is draw k·S + c of the whole stream. Nothing is built or stored: the state consists of the
position and everything that earlier positions depended on.
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
from shards.sampling.partitions import ScatterPartitions
from shards.sampling.permutation import (
    Integers,
    Words,
    derive,
    mix,
    permutation_key,
    permute,
    text_key,
    unpermute,
)
from shards.sampling.stages import MixtureStage, StageSchedule, check_stream_names
from shards.sampling.streams import Stream, check_scatters
from shards.sampling.windows import WindowSpec
from shards.storage.files import canonical_json

_VERSION = 1
_FOREVER = 2**62
"""Greater than any position and any index."""


class DrawnWindows(NamedTuple):
    """The windows drawn at n positions, with their places; each field is an array[n]."""

    stream: Integers
    """Index into the sampler's streams."""
    scatter: Integers
    epoch: Integers
    """The epoch of the stream's part in the scatter, or of the whole stream if it is common."""
    shard: Integers
    """Index into the shards of the stream."""
    window: Integers
    """Number of the window in the shard."""
    phase: Integers
    """The shift of the epoch's windows in tokens, in [0, stride); 0 in epoch 0."""
    key: Words
    """A hash of window and epoch, to seed further random choices."""

    def rows(self, begin: int, end: int) -> "DrawnWindows":
        """Return the windows from `begin` up to `end`."""
        return DrawnWindows._make(column[begin:end] for column in self)


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws windows of streams.

    Raises:
        UserError: at construction, if scatters, stages, weights or caps do not match the streams.
        ValueError: at construction, if there are caps but no `end`.
    """

    streams: Sequence[Stream]
    _: KW_ONLY
    seed: int
    num_scatters: int
    window: WindowSpec
    stages: Sequence[MixtureStage] = ()
    """The stages by ascending start, the first at 0. Default: one stage with equal weights for all
    windows."""
    epoch_caps: Mapping[str, float] = field(default_factory=dict)
    """The maximum number of epochs over the windows of a stream before `end`, by stream name."""
    end: int | None = None
    """The position after the last one; only needed for caps."""

    def __post_init__(self) -> None:
        names = self.names
        if not names or not all(stream.num_tokens for stream in self.streams):
            raise UserError(f"there must be streams, each with tokens; these are {names}")
        if repeated := [name for name, times in Counter(names).items() if times > 1]:
            raise UserError(f"the same data are given twice: {', '.join(repeated)}; give them once")
        check_scatters(self.streams, self.num_scatters)
        check_stream_names(self.epoch_caps, names, what="a maximum of epochs")
        self.schedule.history(0)  # reports impossible weights now, not at the first draw
        if self.epoch_caps:
            self._check_caps()

    @cached_property
    def partitions(self) -> ScatterPartitions:
        """The windows of all streams, divided into partitions."""
        return ScatterPartitions(
            self.streams, num_scatters=self.num_scatters, stride=self.window.stride
        )

    @cached_property
    def names(self) -> list[str]:
        """The names of the streams."""
        return [stream.name for stream in self.streams]

    @cached_property
    def schedule(self) -> StageSchedule:
        """The schedule that decides which stream each position draws."""
        by_windows = MixtureStage(
            start=0, weights=dict(zip(self.names, self.partitions.windows_of_streams, strict=True))
        )
        return StageSchedule(
            self.stages or (by_windows,),
            self.names,
            num_scatters=self.num_scatters,
            seed=self.seed,
        )

    @cached_property
    def _keys(self) -> Words:
        return np.array([text_key(self.seed, name) for name in self.names], np.uint64)

    def draw(self, positions: ArrayLike) -> DrawnWindows:
        """Return the windows at positions, int64[n], which may be in any order.

        Raises:
            ValueError: a position is negative.
        """
        streams, scatters, nth = self.schedule.stream_and_nth(positions)
        partitions = self.partitions.partition_of(streams, scatters)
        nth = np.where(self.partitions.common[streams], nth * self.num_scatters + scatters, nth)
        sizes = self.partitions.sizes[partitions]
        epochs, rest = np.divmod(nth, sizes)
        keys = self._epoch_keys(streams, scatters, epochs)
        indexes = permute(rest, sizes, keys).astype(np.int64)
        shards, windows = self.partitions.locate(partitions, streams, indexes)
        return DrawnWindows(
            stream=streams,
            scatter=scatters,
            epoch=epochs,
            shard=shards,
            window=windows,
            phase=self._phases(keys, epochs),
            key=derive(mix(~keys), indexes),
        )

    def position_of(self, stream: int, *, shard: int, window: int, epoch: int) -> int | None:
        """Return the position of a window in an epoch; None if the stages never reach it."""
        partition, scatter, index = self.partitions.index_of(stream, shard, window)
        size = int(self.partitions.sizes[partition])
        key = permutation_key(self.seed, self.names[stream], scatter, epoch)
        nth = epoch * size + int(unpermute(index, size, key)[0])
        if self.partitions.common[stream]:
            nth, scatter = divmod(nth, self.num_scatters)
        return self.schedule.position_of(stream, nth, scatter)

    def phase_of(self, stream: int, *, shard: int, epoch: int) -> int:
        """Return the phase of a shard's windows in an epoch."""
        epochs, scatters = np.array([epoch]), np.array([shard % self.num_scatters])
        return int(self._phases(self._epoch_keys(np.array([stream]), scatters, epochs), epochs)[0])

    def epochs(self, position: int) -> NDArray[np.float64]:
        """Return float64[streams]: how many epochs of each stream are drawn before a position.

        Scatters have parts of different sizes, so their epochs differ; the largest number is
        returned.
        """
        counts = self.schedule.counts_until(position)
        scatters = np.arange(self.num_scatters)[:, None]
        last = np.where(
            self.partitions.common, (counts - 1) * self.num_scatters + scatters, counts - 1
        )
        partitions = self.partitions.partition_of(np.arange(len(self.streams)), scatters)
        drawn = np.where(counts > 0, last + 1, 0)
        return np.asarray((drawn / self.partitions.sizes[partitions]).max(axis=0), np.float64)

    def state_dict(self, position: int) -> dict[str, Any]:
        """Return, for JSON, a position and everything that the samples before it depended on."""
        history = self.schedule.history(position)
        used = {name for stage in history for name in stage["draws"]}
        return {
            "version": _VERSION,
            "position": position,
            "seed": self.seed,
            "num_scatters": self.num_scatters,
            "window": asdict(self.window),
            "stages": history,
            "shards": {
                stream.name: _digest(stream) for stream in self.streams if stream.name in used
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> int:
        """Return the position of a saved state, from which this sampler continues.

        It may have more streams, and different weights for later positions.

        Raises:
            UserError: before that position this sampler would have drawn different samples.
        """
        position = int(state["position"])
        own = self.state_dict(position)
        for name in ("version", "seed", "num_scatters", "window", "stages", "shards"):
            if state.get(name) != own[name]:
                raise UserError(
                    f"this run cannot resume the saved one at position {position:,}: {name} was "
                    f"{state.get(name)}, now it is {own[name]}. Restore the old value (add new "
                    f"data and weights as another stage from {position:,} on), or start a new run."
                )
        return position

    @property
    def identity(self) -> str:
        """The SHA-256 of everything that draws depend on, all stages included."""
        return hashlib.sha256(canonical_json(self.state_dict(_FOREVER))).hexdigest()

    def _epoch_keys(self, streams: Integers, scatters: Integers, epochs: Integers) -> Words:
        """Return the `permutation_key` of each draw's epoch."""
        parts = np.where(self.partitions.common[streams], 0, scatters)
        return derive(derive(self._keys[streams], parts), epochs)

    def _phases(self, keys: Words, epochs: Integers) -> Integers:
        phases = derive(mix(~keys), _FOREVER) % np.uint64(self.window.stride)
        phases = phases.astype(np.int64)
        return np.where(epochs == 0, 0, phases)

    def _check_caps(self) -> None:
        if self.end is None:
            raise ValueError("epoch_caps need `end`, the position after the last one")
        caps = np.array([self.epoch_caps.get(name, np.inf) for name in self.names])
        epochs = self.epochs(self.end)
        if (epochs <= caps).all():
            return
        last_end = bisect_left(
            range(self.end), x=True, key=lambda end: bool((self.epochs(end + 1) > caps).any())
        )
        stream = int(np.argmax(epochs > caps))
        raise UserError(
            f"stream {self.names[stream]} would be read {epochs[stream]:.4g} times before position "
            f"{self.end:,}, and its maximum is {caps[stream]:g}. End at position {last_end:,} or "
            "earlier, lower its weight, or raise its maximum."
        )


def _digest(stream: Stream) -> str:
    """Return a hash of the sizes of a stream's shards, to distinguish streams of the same name."""
    tokens = np.array([shard.tokens for shard in stream.shards], "<i8")
    return hashlib.sha256(tokens.tobytes()).hexdigest()[:16]
