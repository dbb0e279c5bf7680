"""The windows of a stream in a scatter, numbered through; a stream that is common is one cell."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from shards.order.streams import Stream
from shards.windows import num_windows

Integers = NDArray[np.int64]
Indices = NDArray[np.int32] | Integers


class Cells:
    """What is drawn from: a cell is a stream's shards of one scatter, or all of a common stream."""

    def __init__(self, streams: Sequence[Stream], *, num_scatters: int, stride: int) -> None:
        self._num_scatters = num_scatters
        self.common = np.array([stream.is_common(num_scatters) for stream in streams], np.bool_)
        """By stream: all scatters draw from one cell."""
        self._steps = np.where(self.common, 1, num_scatters)
        self._firsts = np.cumsum(self._steps) - self._steps
        # Shards lie in one row by stream, then scatter, then number: slots.
        tokens = chain.from_iterable(
            [shard.tokens for shard in stream.shards[first::step]]
            for stream, step in zip(streams, self._steps.tolist(), strict=True)
            for first in range(step)
        )
        counts = [
            len(range(first, len(stream.shards), step))
            for stream, step in zip(streams, self._steps.tolist(), strict=True)
            for first in range(step)
        ]
        self._slots = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        windows = num_windows(np.fromiter(tokens, np.int64), stride)
        self._starts = np.concatenate([[0], np.cumsum(windows)])
        self.sizes: Integers = np.diff(self._starts[self._slots])
        """Windows of each cell."""

    def of(self, streams: Indices, scatters: Indices) -> Integers:
        """Return the cell that a scatter draws a stream from."""
        return self._firsts[streams] + np.where(self.common[streams], 0, scatters)

    @property
    def totals(self) -> list[int]:
        """Windows of each stream."""
        return [int(total) for total in np.add.reduceat(self.sizes, self._firsts)]

    def locate(
        self, cells: Integers, streams: Indices, samples: Integers
    ) -> tuple[Integers, Integers]:
        """Return shard of the stream and window of the shard, for samples of cells of streams."""
        windows = self._starts[self._slots[cells]] + samples
        # An empty shard begins where the next one does, and is never the last of those before.
        slots = np.searchsorted(self._starts, windows, side="right") - 1
        shards = (slots - self._slots[cells]) * self._steps[streams] + cells - self._firsts[streams]
        return shards, windows - self._starts[slots]

    def sample(self, stream: int, shard: int, window: int) -> tuple[int, int, int]:
        """Return cell, scatter (0 if common) and sample of a window: the inverse of `locate`."""
        row, scatter = divmod(shard, int(self._steps[stream]))
        cell = int(self._firsts[stream]) + scatter
        slot = self._slots[cell] + row
        return cell, scatter, int(self._starts[slot] - self._starts[self._slots[cell]]) + window
