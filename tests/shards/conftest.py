"""A small dataset: two sources, one of them in four shards (one empty) with validation."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shards.manifest import (
    Generation,
    InputEntry,
    Manifest,
    ShardEntry,
    SourceEntry,
    TableEntry,
    TokenizerEntry,
    write_manifest,
)
from shards.order.streams import Stream
from shards.reader import Dataset
from shards.storage.files import atomic_write
from shards.vocabulary import vocabulary_table, write_vocabulary
from shards.writer import write_shard

EOS, MASK = 256, 257
PIECES = [bytes([i]) for i in range(256)] + [b"<|endoftext|>", b"[MASK]"]
SIZE = 384
GENERATION = "g0001-3f9c12ab"
WUDAO: tuple[list[str], ...] = (
    ["你好。", "天气 fine"],
    [],
    ["a", "bc", "def."],
    ["[MASK] is text"],
)


def put(directory: Path, path: str, texts: Sequence[str], *, order: int) -> ShardEntry:
    """Write a shard of byte tokens."""
    ids = [np.array([*text.encode(), EOS], "<u2") for text in texts]
    documents = pa.table(
        {
            "tokens": pa.array([len(i) for i in ids], pa.int32()),
            "prompt_tokens": pa.array([0] * len(ids), pa.int32()),
            "order": pa.array([order + i for i in range(len(ids))], pa.uint64()),
            "language": pa.array(["zh"] * len(ids)).cast(pa.string()).dictionary_encode(),
            "bytes": pa.array([len(i) - 1 for i in ids], pa.int32()),
            "path": pa.array([f"part-{i}.json" for i in range(len(ids))], pa.string()),
        }
    )
    dtype = np.dtype("<u2")
    return write_shard(directory / path, documents, directory=directory, tokens=ids, dtype=dtype)


def build(directory: Path) -> Manifest:
    """Write a whole dataset."""
    wudao = [
        put(directory, f"{GENERATION}/wudao/{i:05d}", texts, order=i << 62)
        for i, texts in enumerate(WUDAO)
    ]
    held = put(directory, f"{GENERATION}/wudao/validation-00000", ["held out"], order=5)
    pile = put(directory, f"{GENERATION}/pile/00000", ["one", "two"], order=7)
    with atomic_write(directory / GENERATION / "audit" / "0.parquet") as handle:
        handle.write(b"audit rows")
    audit = TableEntry(path=f"{GENERATION}/audit/0.parquet", rows=9, **vars(handle.entry))
    table = vocabulary_table(PIECES, special={EOS, MASK}, size=SIZE)
    manifest = Manifest(
        number=1,
        lineage="0" * 64,
        corpus="wudao",
        options={"seed": 1, "rules": ["short"]},
        tokenizer=TokenizerEntry(
            spec="bytes",
            name="bytes",
            sha256="0" * 64,
            pieces=len(PIECES),
            vocabulary_size=SIZE,
            dtype="uint16",
            special={"eos": EOS, "mask": MASK},
        ),
        vocabulary=write_vocabulary(directory, table),
        libraries={"numpy": "2"},
        generations=(
            Generation(
                number=1,
                name=GENERATION,
                fingerprint="3f9c12ab",
                inputs=(InputEntry(source="wudao", path="a.json", bytes=99, crc32c=(1, 2)),),
                sources={
                    "wudao": SourceEntry(shards=tuple(wudao), validation=(held,)),
                    "pile": SourceEntry(shards=(pile,), validation=()),
                },
                audit=(audit,),
                signatures=(),
                rejects=(),
                accounting={"wudao": {"read": 1234, "dropped": {"short": 2}}},
            ),
        ),
    )
    write_manifest(directory, manifest)
    return manifest


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset that no test changes."""
    directory = tmp_path_factory.mktemp("pristine") / "dataset"
    build(directory)
    return directory


@pytest.fixture
def dataset(pristine: Path, tmp_path: Path) -> Path:
    """A dataset of the test's own."""
    return Path(shutil.copytree(pristine, tmp_path / "dataset"))


@pytest.fixture
def put_shard() -> Callable[..., ShardEntry]:
    return put


@pytest.fixture
def make_stream(pristine: Path) -> Callable[..., Stream]:
    """Makes a stream of shards that hold so many tokens, and no files."""
    opened = Dataset.open(pristine)

    def make(name: str, tokens: Sequence[int]) -> Stream:
        shards = [
            ShardEntry(path=f"{i:05d}", documents=1, tokens=n, files={})
            for i, n in enumerate(tokens)
        ]
        return Stream(name=name, dataset=opened, shards=tuple(shards))

    return make
