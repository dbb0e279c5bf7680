"""Every window once, in order: what validation reads."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from shards.order.cells import Cells
from shards.order.sampler import DrawnWindows, WindowLocations
from shards.order.streams import Stream
from shards.windows import WindowSpec


class OnePass:
    """Goes through all windows of some streams; `draw` and `locate` work like a `Sampler`'s.

    Positions are 0 to len - 1; rank r of W takes positions r, r + W, …
    """

    def __init__(self, streams: Sequence[Stream], *, window: WindowSpec) -> None:
        self.streams = tuple(streams)
        self.window = window

    @cached_property
    def cells(self) -> Cells:
        """Where the windows are: each stream is one cell."""
        return Cells(self.streams, num_scatters=1, stride=self.window.stride)

    def __len__(self) -> int:
        return int(self.cells.sizes.sum())

    def draw(self, positions: ArrayLike) -> DrawnWindows:
        """Return the windows at positions, int64[n].

        Raises:
            IndexError: a position is negative or not below the length.
        """
        index = np.atleast_1d(np.asarray(positions, np.int64))
        if index.size and not 0 <= index.min() <= index.max() < len(self):
            raise IndexError(
                f"positions {index.min()} to {index.max()}: this pass has {len(self)} windows"
            )
        ends = np.cumsum(self.cells.sizes)
        streams = np.searchsorted(ends, index, side="right")
        zeros = np.zeros(len(index), np.int64)
        return DrawnWindows(
            stream=streams.astype(np.int32),
            scatter=zeros.astype(np.int32),
            epoch=zeros,
            sample=index - (ends - self.cells.sizes)[streams],
        )

    def locate(self, drawn: DrawnWindows) -> WindowLocations:
        """Return where the windows are."""
        cells = self.cells.index_of(drawn.stream, drawn.scatter)
        shards, windows = self.cells.locate(cells, drawn.stream, drawn.sample)
        return WindowLocations(shards, windows, drawn.epoch)
