"""Every window once, in order: what validation reads."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from shards.order.cells import Cells
from shards.order.sampler import Draws, Places
from shards.order.streams import Stream
from shards.windows import WindowSpec


class OnePass:
    """Goes through all windows of some streams; `draw` and `locate` are those of a `Sampler`.

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

    def draw(self, positions: ArrayLike) -> Draws:
        """Return what is at each position, int64[n].

        Raises:
            IndexError: a position is not below the length.
        """
        places = np.atleast_1d(np.asarray(positions, np.int64))
        if places.size and not 0 <= places.min() <= places.max() < len(self):
            raise IndexError(f"positions {places.min()} to {places.max()}: there are {len(self)}")
        ends = np.cumsum(self.cells.sizes)
        streams = np.searchsorted(ends, places, side="right")
        none = np.zeros(len(places), np.int64)
        return Draws(
            stream=streams.astype(np.int32),
            scatter=none.astype(np.int32),
            epoch=none,
            sample=places - (ends - self.cells.sizes)[streams],
        )

    def locate(self, draws: Draws) -> Places:
        """Return where the windows are."""
        cells = self.cells.of(draws.stream, draws.scatter)
        shards, windows = self.cells.locate(cells, draws.stream, draws.sample)
        return Places(shards, windows, draws.epoch)
