"""mosaicml-streaming pins another numpy, so that it is no part of the environment of the tests.

`read` does what its MDSReader does, and two exports are compared with what its MDSWriter (0.13)
made of the same documents.
"""

import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from shards.manifest import TRAIN, VALIDATION, SourceEntry, write_manifest
from tests.shards.datasets import manifest_of, put_shard
from tests.shards.exports.worlds import World, export


def read(folder: Path) -> list[tuple[int, ...]]:
    """The samples of a split."""
    index = json.loads((folder / "index.json").read_text())
    assert index["version"] == 2
    samples = []
    for number, shard in enumerate(index["shards"]):
        assert (shard["format"], shard["version"]) == ("mds", 2)
        assert shard["raw_data"]["basename"] == f"shard.{number:05d}.mds"
        content = (folder / shard["raw_data"]["basename"]).read_bytes()
        assert shard["raw_data"]["bytes"] == len(content)
        offsets = np.frombuffer(content, "<u4", shard["samples"] + 1, 4).tolist()
        assert int.from_bytes(content[:4], "little") == shard["samples"]
        assert offsets[-1] == len(content)
        config = json.loads(content[4 + 4 * len(offsets) : offsets[0]])
        assert config.items() <= shard.items()
        for start, stop in itertools.pairwise(offsets):
            samples.append(decoded(content[start:stop], config))
    return samples


def decoded(sample: bytes, config: dict[str, list[str]]) -> tuple[int, ...]:
    """The tokens of a sample, as the encoding `ndarray` has them."""
    assert config["column_names"] == ["tokens"]
    kind, dtype, *shape = config["column_encodings"][0].split(":")
    assert kind == "ndarray"
    if shape:
        (length,) = map(int, shape)
        assert config["column_sizes"] == [len(sample)]
    else:
        assert int.from_bytes(sample[:4], "little") == len(sample) - 4
        dimensions, width = sample[4] >> 2, 2 ** (sample[4] % 4)
        assert dimensions == 1
        length = int.from_bytes(sample[5 : 5 + width], "little")
        sample = sample[5 + width :]
    tokens = np.frombuffer(sample, dtype)
    assert len(tokens) == length
    return tuple(tokens.tolist())


@pytest.mark.parametrize("limit", [None, 40, 400])
def test_samples_are_documents(
    world: World, plain: World, tmp_path: Path, limit: int | None
) -> None:
    flags = [] if limit is None else ["--tokens-per-file", str(limit)]
    for chosen in (world, plain):
        out = tmp_path / str(chosen is plain)
        assert export(chosen, "mds", out, *flags) == 0
        for split in (TRAIN, VALIDATION):
            documents = [document.tokens for document in chosen.documents[split]]
            assert read(out / split) == documents
            assert len([*(out / split).glob("*.mds")]) >= len(chosen.shards(split))


@pytest.mark.parametrize(("length", "limit"), [(1, 200), (8, None), (19, 19 * 9), (19, 100)])
def test_samples_are_sequences(
    world: World,
    tmp_path: Path,
    length: int,
    limit: int | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flags = ["--sequence-length", str(length)]
    flags += [] if limit is None else ["--tokens-per-file", str(limit)]
    out = tmp_path / "out"
    assert export(world, "mds", out, *flags) == 0
    shown = capsys.readouterr().out
    for split in (TRAIN, VALIDATION):
        stream = world.stream(split)
        whole = len(stream) // length * length
        wanted = [tuple(stream[start : start + length]) for start in range(0, whole, length)]
        assert read(out / split) == wanted
        told = f"the last {len(stream) - whole:,} tokens of {split} fill no sample"
        assert (told in shown) == (whole < len(stream))
        largest = max(path.stat().st_size for path in (out / split).glob("*.mds"))
        assert limit is None or largest < 1024 + (2 + 4) * limit


DOCUMENTS: Sequence[Sequence[int]] = ([5, 6, 7, 0], [0], [*range(300), 0], [9, 0])


@pytest.mark.parametrize(
    ("flags", "index", "shard"),
    [
        ([], "6315b1e443a4fec2592c6770e7b7d8f9", "7f45f18848975436885eede4c9c1195a"),
        (
            ["--sequence-length", "8"],
            "5153fc3fcd4d83c16af408ccc4d62de5",
            "f7303611ea1118b0173543b1af2b74cb",
        ),
    ],
    ids=["documents", "sequences"],
)
def test_the_bytes_are_those_that_streaming_writes(
    tmp_path: Path, flags: Sequence[str], index: str, shard: str
) -> None:
    entry = put_shard(tmp_path / "dataset", "g0001-00/news/00000", DOCUMENTS)
    source = SourceEntry(shards=(entry,), validation=())
    manifest = manifest_of(
        tmp_path / "dataset",
        {"news": source},
        corpus="golden",
        pieces=[b"x"] * 300,
        special={"eos": 0},
        name="g0001-00",
        fingerprint="00",
    )
    write_manifest(tmp_path / "dataset", manifest)
    assert export(tmp_path / "dataset", "mds", tmp_path / "out", *flags) == 0
    for name, wanted in (("index.json", index), ("shard.00000.mds", shard)):
        content = (tmp_path / "out" / "train" / name).read_bytes()
        assert hashlib.sha256(content).hexdigest().startswith(wanted)


def test_validation_may_be_too_small_for_a_sample(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert export(world, "mds", out, "--sequence-length", "50") == 0
    assert "the last 49 tokens of validation fill no sample" in capsys.readouterr().out
    assert len(read(out / "train")) == 16
    assert not (out / "validation").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--sequence-length", "804"], "is more than 803, the tokens there are to train on"),
        (["--sequence-length", "9", "--tokens-per-file", "8"], "is more than 8, the tokens"),
        (["--tokens-per-file", "1G"], "more than the offsets of an MDS file reach"),
    ],
)
def test_what_cannot_be_is_refused(
    world: World,
    tmp_path: Path,
    flags: Sequence[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(world.stream()) == 803
    assert export(world, "mds", tmp_path / "out", *flags) == 2
    assert message in capsys.readouterr().err
