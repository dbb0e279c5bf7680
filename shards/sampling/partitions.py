"""The windows of all streams as numbered cells, which scatters draw from.

A cell is the part of a stream in one scatter; a common stream is a single cell.
"""

from collections.abc import Sequence

import numpy as np

from shards.sampling.permutation import Indices, Integers
from shards.sampling.streams import Stream
from shards.sampling.windows import num_windows


class ScatterPartitions:
    """The cells of some streams, by stream and then by scatter."""

    def __init__(self, streams: Sequence[Stream], *, num_scatters: int, stride: int) -> None:
        self.common = np.array([stream.is_common(num_scatters) for stream in streams], np.bool_)
        """bool[streams]: all scatters draw from one cell."""
        self._cells_of_stream = np.where(self.common, 1, num_scatters)
        self._first_cells = np.cumsum(self._cells_of_stream) - self._cells_of_stream
        shards = [
            stream.shards[scatter::step]
            for stream, step in zip(streams, self._cells_of_stream.tolist(), strict=True)
            for scatter in range(step)
        ]
        # Slots are the shards of all cells in one row; a cell's slots lie between two edges.
        counts = [len(cell_shards) for cell_shards in shards]
        self._slot_edges = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        tokens = [shard.tokens for cell_shards in shards for shard in cell_shards]
        windows = num_windows(np.array(tokens, np.int64), stride)
        self._window_edges = np.concatenate([[0], np.cumsum(windows)])
        self.sizes: Integers = np.diff(self._window_edges[self._slot_edges])
        """int64[cells]: windows of each cell."""

    def index_of(self, streams: Indices, scatters: Indices) -> Integers:
        """Return the cell that each scatter draws each stream from, elementwise."""
        return self._first_cells[streams] + np.where(self.common[streams], 0, scatters)

    @property
    def windows_of_streams(self) -> list[int]:
        """Windows of each stream."""
        return [int(windows) for windows in np.add.reduceat(self.sizes, self._first_cells)]

    def locate(
        self, cells: Integers, streams: Indices, samples: Integers
    ) -> tuple[Integers, Integers]:
        """Return the shard in its stream and the window in its shard of each sample of a cell."""
        first_slots = self._slot_edges[cells]
        windows = self._window_edges[first_slots] + samples
        # An empty shard has the same edge as the next one: side="right" skips it.
        slots = np.searchsorted(self._window_edges, windows, side="right") - 1
        scatters = cells - self._first_cells[streams]
        shards = (slots - first_slots) * self._cells_of_stream[streams] + scatters
        return shards, windows - self._window_edges[slots]

    def sample_of(self, stream: int, shard: int, window: int) -> tuple[int, int, int]:
        """Invert `locate`: return the cell, scatter (0 if common) and sample of a window."""
        row, scatter = divmod(shard, int(self._cells_of_stream[stream]))
        cell = int(self._first_cells[stream]) + scatter
        first_slot = self._slot_edges[cell]
        windows_before = self._window_edges[first_slot + row] - self._window_edges[first_slot]
        return cell, scatter, int(windows_before) + window
