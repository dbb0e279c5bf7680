from collections.abc import Callable, Sequence

import numpy as np
import pytest

from shards.order.cells import Cells
from shards.order.streams import Stream

Make = Callable[..., Stream]
# Windows of 10 tokens: "wide" lies in scatters, "narrow" has fewer shards than there are scatters.
TOKENS: dict[str, Sequence[int]] = {"wide": [95, 40, 0, 71], "narrow": [12]}


@pytest.fixture
def cells(make_stream: Make) -> Cells:
    streams = [make_stream(name, tokens) for name, tokens in TOKENS.items()]
    return Cells(streams, num_scatters=2, stride=10)


def test_a_cell_is_a_stream_s_part_of_a_scatter_or_a_common_stream(cells: Cells) -> None:
    assert cells.common.tolist() == [False, True]
    # wide: shards 0 and 2 in scatter 0, shards 1 and 3 in scatter 1; narrow: all of it
    assert cells.sizes.tolist() == [10 + 0, 4 + 8, 2]
    assert cells.windows_of_streams == [22, 2]
    assert cells.index_of(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])).tolist() == [0, 1, 2, 2]


def test_samples_of_a_cell_are_its_windows_by_shard(cells: Cells) -> None:
    samples = np.arange(12)
    streams = np.zeros(12, np.int64)
    shards, windows = cells.locate(np.ones(12, np.int64), streams, samples)
    assert shards.tolist() == [1] * 4 + [3] * 8
    assert windows.tolist() == [*range(4), *range(8)]


def test_every_sample_goes_to_a_window_and_back(cells: Cells) -> None:
    for cell, (stream, scatter) in enumerate([(0, 0), (0, 1), (1, 0)]):
        for sample in range(cells.sizes[cell]):
            shard, window = cells.locate(np.array([cell]), np.array([stream]), np.array([sample]))
            back = cells.sample_of(stream, int(shard[0]), int(window[0]))
            assert back == (cell, scatter, sample)


def test_no_sample_lies_in_an_empty_shard(make_stream: Make) -> None:
    cells = Cells([make_stream("s", [0, 15, 0, 0, 5])], num_scatters=1, stride=10)
    shards, windows = cells.locate(*np.zeros((2, 3), np.int64), np.arange(3))
    assert shards.tolist() == [1, 1, 4]
    assert windows.tolist() == [0, 1, 0]
