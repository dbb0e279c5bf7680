from collections.abc import Callable
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.manifest import VALIDATION
from shards.order.streams import Stream, check_scatters, streams_of
from shards.reader import Dataset

Make = Callable[..., Stream]


def test_streams_of_a_dataset(pristine: Path) -> None:
    dataset = Dataset.open(pristine)
    streams = streams_of(dataset)
    assert [stream.name for stream in streams] == ["3f9c12ab/pile", "3f9c12ab/wudao"]
    assert [len(stream.shards) for stream in streams] == [1, 4]
    assert streams[1].num_tokens == sum(shard.tokens for shard in streams[1].shards)
    assert streams[1].dataset is dataset
    held = streams_of(dataset, split=VALIDATION)
    assert [stream.name for stream in held] == ["3f9c12ab/wudao/validation"]


def test_common_is_what_leaves_a_scatter_without_a_token(make_stream: Make) -> None:
    stream = make_stream("s", [5, 0, 3, 1])
    assert not stream.is_common(1)
    assert not stream.is_common(2)
    assert stream.is_common(4)
    assert stream.is_common(8)
    assert not make_stream("s", [5, 1, 3, 1]).is_common(4)


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
