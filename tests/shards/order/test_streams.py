from collections.abc import Callable

import pytest

from shards.errors import UserError
from shards.order.streams import Stream, check_scatters

Make = Callable[..., Stream]


@pytest.mark.parametrize(
    ("counts", "scatters", "message"),
    [
        ([64, 64], 48, r"fit: 16, 32, 64\."),
        ([6, 4], 4, r"stream s0 has 6 shards.* fit: 1, 2, 6\."),
    ],
)
def test_scatters_that_do_not_fit(
    make_stream: Make, counts: list[int], scatters: int, message: str
) -> None:
    streams = [make_stream(f"s{i}", [9] * count) for i, count in enumerate(counts)]
    with pytest.raises(UserError, match=message):
        check_scatters(streams, scatters)
