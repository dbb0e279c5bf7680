from hypothesis import given
from hypothesis import strategies as st

from shards.range import EVERYTHING, Range


def test_a_range_is_a_share_of_all_orders() -> None:
    assert Range.of(1, 4) == Range(low=2**62, high=2**63)
    assert Range.of(0, 1) == EVERYTHING


@given(st.integers(1, 2**20), st.data())
def test_ranges_partition_all_orders(total: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, total - 1))
    found = Range.of(index, total)
    for order in (found.low, found.high - 1):
        assert (order * total) >> 64 == index
    assert found.low == (Range.of(index - 1, total).high if index else 0)
    assert found.high == (Range.of(index + 1, total).low if index < total - 1 else 2**64)


def test_ranges_have_orders_in_common_or_not() -> None:
    first, second, half = Range.of(0, 4), Range.of(1, 4), Range.of(0, 2)
    assert not first.overlaps(second)
    assert not second.overlaps(first)
    assert half.overlaps(second)
    assert half.common(second) == second == second.common(EVERYTHING)
    assert half.common(Range(low=5, high=2**64)) == Range(low=5, high=2**63)
