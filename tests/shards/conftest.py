"""Fixtures of small datasets: two sources, one with four shards (one empty) and validation."""

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shards.manifest import InputEntry, Manifest, ShardEntry, TableEntry, write_manifest
from shards.reader import Dataset
from shards.sampling.streams import Stream
from shards.storage.files import atomic_write
from shards.storage.remote import AnyPath, RemotePath
from tests.shards.datasets import put_dataset
from tests.shards.grown import Grown, make_grown
from tests.shards.library import build as put_library

EOS, MASK = 256, 257
PIECES = [bytes([i]) for i in range(256)] + [b"<|endoftext|>", b"[MASK]"]
GENERATION = "g0001-3f9c12ab"
TEXTS: Mapping[str, Sequence[str]] = {
    f"{GENERATION}/wudao/00000": ["你好。", "天气 fine"],
    f"{GENERATION}/wudao/00001": [],
    f"{GENERATION}/wudao/00002": ["a", "bc", "def."],
    f"{GENERATION}/wudao/00003": ["[MASK] is text"],
    f"{GENERATION}/wudao/validation-00000": ["held out"],
    f"{GENERATION}/pile/00000": ["one", "two"],
}
"""The texts of each shard, by path."""


def of_texts(texts: Sequence[str], *, order: int) -> dict[str, Any]:
    """Return a shard of texts; a token is a byte, and the order counts up from `order`."""
    return {
        "documents": [[*text.encode(), EOS] for text in texts],
        "order": range(order, order + len(texts)),
        "language": pa.array(["zh"] * len(texts), pa.string()).dictionary_encode(),
        "bytes": pa.array([len(text.encode()) for text in texts], pa.int32()),
        "path": pa.array([f"part-{i}.json" for i in range(len(texts))], pa.string()),
    }


def build(directory: Path, texts: Mapping[str, Sequence[str]] = TEXTS) -> Manifest:
    """Write a complete dataset, and return the manifest."""
    shards = {path: of_texts(held, order=int(path[-5:]) << 62) for path, held in texts.items()}
    with atomic_write(directory / GENERATION / "audit" / "0.parquet") as handle:
        handle.write(b"audit rows")
    audit = TableEntry(path=f"{GENERATION}/audit/0.parquet", rows=9, **vars(handle.entry))
    manifest = put_dataset(
        directory,
        shards,
        corpus="wudao",
        pieces=PIECES,
        special={"eos": EOS, "mask": MASK},
        inputs=(InputEntry(source="wudao", path="a.json", bytes=99, crc32c=(1, 2)),),
        audit=(audit,),
        accounting={"wudao": {"read": 1234, "dropped": {"short": 2}}},
    )
    options = {"seed": 1, "rules": ["short"]}
    manifest = replace(manifest, options=options, libraries={"numpy": "2"})
    write_manifest(directory, manifest)
    return manifest


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset that no test changes."""
    directory = tmp_path_factory.mktemp("pristine") / "dataset"
    build(directory)
    return directory


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of two generations whose documents have names, and that no test changes."""
    directory = tmp_path_factory.mktemp("library") / "dataset"
    put_library(directory)
    return directory


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Grown:
    """A dataset that pipelines built, with every kind of file, and the input; both are shared."""
    return make_grown(tmp_path_factory.mktemp("grown"))


@pytest.fixture
def grown(original: Grown, tmp_path: Path) -> Path:
    """One test's copy of `original`'s dataset: two generations, and two removals, one replaced."""
    return Path(shutil.copytree(original.dataset, tmp_path / "grown"))


@pytest.fixture
def remote() -> Iterator[RemotePath]:
    """An empty folder that a URL names."""
    path = RemotePath(f"memory://{uuid.uuid4().hex}")
    yield path
    path.remove([*path.files()])


@pytest.fixture(params=["disk", "URL"])
def either(request: pytest.FixtureRequest, tmp_path: Path, remote: RemotePath) -> AnyPath:
    """An empty folder on a disk, then one behind a URL."""
    return tmp_path if request.param == "disk" else remote


@pytest.fixture
def dataset(pristine: Path, tmp_path: Path) -> Path:
    """A dataset that one test may change."""
    return Path(shutil.copytree(pristine, tmp_path / "dataset"))


@pytest.fixture
def make_stream(pristine: Path) -> Callable[..., Stream]:
    """A function that returns a stream whose shards have given numbers of tokens, but no files."""
    opened = Dataset.open(pristine)

    def make(name: str, tokens: Sequence[int]) -> Stream:
        shards = [
            ShardEntry(path=f"{i:05d}", documents=1, tokens=num_tokens, files={})
            for i, num_tokens in enumerate(tokens)
        ]
        return Stream(name=name, dataset=opened, shards=tuple(shards))

    return make
