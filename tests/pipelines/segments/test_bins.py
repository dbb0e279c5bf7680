from pathlib import Path

import numpy as np
import pytest

from pipelines.segments.bins import Bins, bins_table
from pipelines.segments.segment import NUM_BINS
from shards.range import FULL_RANGE, Range
from shards.tables import write_table


@pytest.mark.parametrize("within", [FULL_RANGE, Range.of(5, 8), Range.of(3, 2**40)], ids=str)
def test_bins_around_a_range_hold_its_documents(tmp_path: Path, within: Range) -> None:
    rng = np.random.default_rng(1)
    order = np.sort(rng.integers(within.low, within.high - 1, 5000, np.uint64, endpoint=True))
    lengths = rng.integers(1, 9, len(order))
    write_table(tmp_path / "bins", bins_table(order, lengths, within=within))
    bins = Bins(tmp_path / "bins")
    assert len(bins.documents) == len(bins.tokens) == NUM_BINS + 1
    width = within.high - within.low
    for part, parts in ((0, 1), (0, 7), (3, 7), (6, 7), (4000, 5000)):
        low = within.low + width * part // parts
        high = within.low + width * (part + 1) // parts
        first, last = bins.around(Range(low=low, high=high))
        inside = np.flatnonzero((order >= np.uint64(low)) & (order <= np.uint64(high - 1)))
        start, stop = bins.documents[first], bins.documents[last]
        assert start <= inside[0] <= inside[-1] < stop
        assert stop - start - len(inside) < 20, "two bins"
        assert bins.tokens[first] == lengths[:start].sum()
    assert bins.around(FULL_RANGE) == (0, NUM_BINS)
    assert bins.tokens[-1] == lengths.sum()
