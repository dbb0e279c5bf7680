from dataclasses import replace
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.manifest import SourceEntry, read_manifest, write_manifest
from shards.sampling.mixture import Blend, WeightedData, epoch_caps, open_mixture, parse_data
from shards.sampling.mixture_schedule import draws_per_period
from tests.shards.conftest import TEXTS, build

PILE, WUDAO = "3f9c12ab/pile", "3f9c12ab/wudao"
STRIDE = 4
"""Windows have 4 tokens: pile has 2 windows; wudao's shards of 22, 0, 10, 15 tokens have 6 + 0 + 3
+ 4."""


def weights(*data: str) -> dict[str, float]:
    mixture = open_mixture([Blend(start=0, data=data)], stride=STRIDE)
    (stage,) = mixture.stages
    assert list(stage.weights) == [stream.name for stream in mixture.streams]
    return dict(stage.weights)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a", WeightedData(dataset="a")),
        ("a@3", WeightedData(dataset="a@3")),
        ("a=0.25", WeightedData(dataset="a", weight=0.25)),
        ("a:pile", WeightedData(dataset="a", source="pile")),
        ("x/a@3:pile=2", WeightedData(dataset="x/a@3", source="pile", weight=2)),
        ("x=1/a", WeightedData(dataset="x=1/a")),
    ],
)
def test_names_of_data(text: str, data: WeightedData) -> None:
    assert parse_data(text) == data
    assert str(data) == text


def test_a_folder_s_own_name_comes_first(tmp_path: Path) -> None:
    for name in ("a=1", "a:b"):
        (tmp_path / name).mkdir()
    assert parse_data(f"{tmp_path}/a=1") == WeightedData(dataset=f"{tmp_path}/a=1")
    assert parse_data(f"{tmp_path}/a=1=2") == WeightedData(dataset=f"{tmp_path}/a=1", weight=2)
    assert parse_data(f"{tmp_path}/a:b:c") == WeightedData(dataset=f"{tmp_path}/a:b", source="c")


@pytest.mark.parametrize("text", ["a", "a@2", "a:web", "a@2:web=0.5"])
def test_a_path_for_every_folder(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(parse_data(text).absolute()) == f"{tmp_path}/{text}"
    odd = tmp_path / "b@3"
    odd.mkdir()
    assert str(parse_data("b@3").absolute()) == str(odd)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # If there are no weights, every window weighs the same; a weight is divided among windows.
        (["{}"], {PILE: 2, WUDAO: 13}),
        (["{}:pile", "{}:wudao"], {PILE: 2, WUDAO: 13}),
        (["{}=3"], {PILE: 3 * 2 / 15, WUDAO: 3 * 13 / 15}),
        (["{}:wudao=1", "{}:pile=0.25"], {WUDAO: 1, PILE: 0.25}),
        (["{}:pile"], {PILE: 2}),
    ],
)
def test_weights_of_streams(pristine: Path, data: list[str], expected: dict[str, float]) -> None:
    assert weights(*(each.format(pristine) for each in data)) == pytest.approx(expected)


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A dataset to which manifest 2 added a second generation of the source pile."""
    build(tmp_path, {**TEXTS, "g0002-aa/pile/00000": ["three"]})
    return tmp_path


def test_a_source_has_a_stream_in_each_generation(grown: Path) -> None:
    assert weights(f"{grown}:pile=1") == {PILE: 0.5, "aa/pile": 0.5}
    streams = open_mixture([Blend(start=0, data=(f"{grown}@1",))], stride=STRIDE).streams
    assert epoch_caps({f"{grown}:pile": 1.5}, streams) == {PILE: 1.5}
    streams = open_mixture([Blend(start=0, data=(f"{grown}@2",))], stride=STRIDE).streams
    assert epoch_caps({f"{grown}:pile": 1.5}, streams) == {PILE: 1.5, "aa/pile": 1.5}
    with pytest.raises(UserError, match=r"given for .*:x, which this run does not read"):
        epoch_caps({f"{grown}:x": 1.5}, streams)


def test_a_generation_that_is_too_small_for_a_share_is_drawn(grown: Path) -> None:
    manifest = read_manifest(grown)
    first, second = manifest.generations
    huge = replace(first.sources["wudao"].shards[0], tokens=10**9)
    sources = {**first.sources, "wudao": SourceEntry(shards=(huge,), validation=())}
    write_manifest(grown, replace(manifest, generations=(replace(first, sources=sources), second)))
    drawn = weights(str(grown))
    assert min(drawn.values()) / sum(drawn.values()) == pytest.approx(2 / 2**16, rel=0.01)
    assert len(draws_per_period(list(drawn.values()))) == 3
    with pytest.raises(UserError, match="the smallest share that can be drawn"):
        weights(f"{grown}:wudao=1", f"{grown}:pile=0.000001")
