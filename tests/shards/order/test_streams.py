from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.manifest import VALIDATION, read_manifest, write_manifest
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


def test_a_generation_more_changes_no_other_stream(dataset: Path) -> None:
    before = streams_of(Dataset.open(dataset))
    manifest = read_manifest(dataset)
    second = replace(
        manifest.generations[0], number=2, name="g0002-00c0ffee", fingerprint="00c0ffee"
    )
    write_manifest(
        dataset, replace(manifest, number=2, generations=(*manifest.generations, second))
    )
    after = streams_of(Dataset.open(dataset))
    assert after[:2] == before
    assert [stream.name for stream in after[2:]] == ["00c0ffee/pile", "00c0ffee/wudao"]
    assert streams_of(Dataset.open(f"{dataset}@1")) == before


def test_common_is_what_leaves_a_scatter_without_a_token(make_stream: Make) -> None:
    stream = make_stream("s", [5, 0, 3, 1])
    assert not stream.is_common(1)
    assert not stream.is_common(2)
    assert stream.is_common(4)
    assert stream.is_common(8)
    assert not make_stream("s", [5, 1, 3, 1]).is_common(4)


@pytest.mark.parametrize("scatters", [1, 2, 4, 8, 9, 64])
def test_scatters_that_fit(make_stream: Make, scatters: int) -> None:
    check_scatters([make_stream("large", [9] * 8), make_stream("one document", [3])], scatters)


@pytest.mark.parametrize(
    ("counts", "scatters", "message"),
    [
        ([8], 3, r"3 scatters do not fit: stream s0 has 8 shards.* fit: 1, 2, 4\."),
        ([64, 64], 48, r"fit: 16, 32, 64\."),
        ([6, 4], 4, r"stream s0 has 6 shards.* fit: 1, 2, 6\."),
        ([8], 0, "0 scatters: there must be 1 or more"),
    ],
)
def test_scatters_that_do_not_fit(
    make_stream: Make, counts: list[int], scatters: int, message: str
) -> None:
    streams = [make_stream(f"s{i}", [9] * count) for i, count in enumerate(counts)]
    with pytest.raises(UserError, match=message):
        check_scatters(streams, scatters)
