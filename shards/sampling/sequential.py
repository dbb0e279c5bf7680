"""Reads every window once, in order, or an evenly spaced subset: for validation."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from shards.sampling.partitions import ScatterPartitions
from shards.sampling.sampler import DrawnWindows, WindowLocations
from shards.sampling.streams import Stream
from shards.sampling.windows import WindowSpec


class SequentialSampler:
    """Iterates over windows of some streams; `draw` and `locate` work like those of `Sampler`.

    Positions are 0 to len - 1; rank r of W takes positions r, r + W, …
    """

    def __init__(
        self, streams: Sequence[Stream], *, window: WindowSpec, max_windows: int | None = None
    ) -> None:
        """Select all windows, or `max_windows` windows at equal distances."""
        self.streams = tuple(streams)
        self.window = window
        self._at_most = max_windows

    @cached_property
    def partitions(self) -> ScatterPartitions:
        """The windows of all streams; each stream is one partition."""
        return ScatterPartitions(self.streams, num_scatters=1, stride=self.window.stride)

    @cached_property
    def num_windows(self) -> int:
        """The number of all windows."""
        return int(self.partitions.sizes.sum())

    def __len__(self) -> int:
        return self.num_windows if self._at_most is None else min(self._at_most, self.num_windows)

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
        zeros = np.zeros(len(numbers), np.int64)
        return DrawnWindows(
            stream=streams.astype(np.int32),
            scatter=zeros.astype(np.int32),
            epoch=zeros,
            index=numbers - (ends - self.partitions.sizes)[streams],
        )

    def locate(self, drawn: DrawnWindows) -> WindowLocations:
        """Return where the windows are."""
        partitions = self.partitions.partition_of(drawn.stream, drawn.scatter)
        shards, windows = self.partitions.locate(partitions, drawn.stream, drawn.index)
        return WindowLocations(shards, windows, drawn.epoch)
