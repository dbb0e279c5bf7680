"""Reads every window once and in order, or an evenly spaced subset, for validation."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from shards.sampling.partitions import ScatterPartitions
from shards.sampling.permutation import derive, text_key
from shards.sampling.sampler import DrawnWindows
from shards.sampling.streams import Stream
from shards.sampling.windows import WindowSpec


class SequentialSampler:
    """Iterates over windows of some streams; `draw` works like that of `Sampler`.

    Positions are 0 to len - 1; rank r of W takes positions r, r + W, …
    """

    def __init__(
        self, streams: Sequence[Stream], *, window: WindowSpec, max_windows: int | None = None
    ) -> None:
        """Select all windows, or `max_windows` windows at equal distances."""
        self.streams = tuple(streams)
        self.window = window
        self._max_windows = max_windows

    @cached_property
    def partitions(self) -> ScatterPartitions:
        """The windows of all streams; each stream is one partition."""
        return ScatterPartitions(self.streams, num_scatters=1, stride=self.window.stride)

    @cached_property
    def num_windows(self) -> int:
        """The number of all windows."""
        return int(self.partitions.sizes.sum())

    def __len__(self) -> int:
        return (
            self.num_windows
            if self._max_windows is None
            else min(self._max_windows, self.num_windows)
        )

    def draw(self, positions: ArrayLike) -> DrawnWindows:
        """Return the windows at positions, int64[n].

        Raises:
            IndexError: a position is negative or not below the length.
        """
        array = np.atleast_1d(np.asarray(positions, np.int64))
        if array.size and not 0 <= array.min() <= array.max() < len(self):
            raise IndexError(
                f"positions {array.min()} to {array.max()}: this pass has {len(self)} windows"
            )
        numbers = array * self.num_windows // max(1, len(self))
        ends = np.cumsum(self.partitions.sizes)
        streams = np.searchsorted(ends, numbers, side="right")
        indexes = numbers - (ends - self.partitions.sizes)[streams]
        shards, windows = self.partitions.locate(streams, streams, indexes)
        zeros = np.zeros(len(numbers), np.int64)
        # Keys depend only on the text, so that validation is the same in runs with different seeds.
        keys = np.array([text_key(0, stream.name) for stream in self.streams], np.uint64)
        return DrawnWindows(
            stream=streams,
            scatter=zeros,
            epoch=zeros,
            shard=shards,
            window=windows,
            phase=zeros,
            key=derive(derive(keys[streams], shards), windows),
        )
