"""The windows of all streams as numbered partitions, which scatters draw from.

A partition is the part of a stream in one scatter; a common stream is a single partition.
"""

from collections.abc import Sequence

import numpy as np

from shards.sampling.permutation import Integers
from shards.sampling.streams import Stream
from shards.sampling.windows import num_windows


class ScatterPartitions:
    """The partitions of some streams, by stream and then by scatter."""

    def __init__(self, streams: Sequence[Stream], *, num_scatters: int, stride: int) -> None:
        self.common = np.array([stream.is_common(num_scatters) for stream in streams], np.bool_)
        """bool[streams]: whether all scatters draw from one partition."""
        self._partitions_of_stream = np.where(self.common, 1, num_scatters)
        self._first_partitions = np.cumsum(self._partitions_of_stream) - self._partitions_of_stream
        shards = [
            stream.shards[scatter::step]
            for stream, step in zip(streams, self._partitions_of_stream.tolist(), strict=True)
            for scatter in range(step)
        ]
        # Slots are the shards of all partitions in one list; each partition is between two edges.
        counts = [len(partition_shards) for partition_shards in shards]
        self._slot_edges = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        tokens = [shard.tokens for partition_shards in shards for shard in partition_shards]
        windows = num_windows(np.array(tokens, np.int64), stride)
        self._window_edges = np.concatenate([[0], np.cumsum(windows)])
        self.sizes: Integers = np.diff(self._window_edges[self._slot_edges])
        """int64[partitions]: the number of windows in each partition."""

    def partition_of(self, streams: Integers, scatters: Integers) -> Integers:
        """Return the partition that each scatter draws each stream from, elementwise."""
        return self._first_partitions[streams] + np.where(self.common[streams], 0, scatters)

    @property
    def windows_of_streams(self) -> list[int]:
        """The number of windows in each stream."""
        return [int(windows) for windows in np.add.reduceat(self.sizes, self._first_partitions)]

    def locate(
        self, partitions: Integers, streams: Integers, indexes: Integers
    ) -> tuple[Integers, Integers]:
        """Return the number of each index's shard in the stream, and of its window in that shard.

        An index counts the windows of a partition.
        """
        first_slots = self._slot_edges[partitions]
        windows = self._window_edges[first_slots] + indexes
        # An empty shard has the same edge as the next one: side="right" skips it.
        slots = np.searchsorted(self._window_edges, windows, side="right") - 1
        scatters = partitions - self._first_partitions[streams]
        shards = (slots - first_slots) * self._partitions_of_stream[streams] + scatters
        return shards, windows - self._window_edges[slots]

    def index_of(self, stream: int, shard: int, window: int) -> tuple[int, int, int]:
        """Invert `locate`: return partition, scatter (0 if common) and index of a window."""
        row, scatter = divmod(shard, int(self._partitions_of_stream[stream]))
        partition = int(self._first_partitions[stream]) + scatter
        first_slot = self._slot_edges[partition]
        windows_before = self._window_edges[first_slot + row] - self._window_edges[first_slot]
        return partition, scatter, int(windows_before) + window
