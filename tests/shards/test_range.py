from hypothesis import given
from hypothesis import strategies as st

from shards.range import Range


@given(st.integers(1, 2**20), st.data())
def test_ranges_partition_all_orders(total: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, total - 1))
    found = Range.of(index, total)
    for order in (found.low, found.high - 1):
        assert (order * total) >> 64 == index
    assert found.low == (Range.of(index - 1, total).high if index else 0)
    assert found.high == (Range.of(index + 1, total).low if index < total - 1 else 2**64)
