from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards.format import REQUIRED
from shards.manifest import ShardEntry
from shards.reader import Shard
from shards.storage.files import map_bytes
from shards.writer import write_shard

U2 = np.dtype("<u2")


def table(lengths: list[int], **columns: Any) -> pa.Table:
    return pa.table(
        {
            **columns,
            "order": pa.array(range(len(lengths)), pa.uint64()),
            "prompt_tokens": pa.array([0] * len(lengths), pa.int32()),
            "tokens": pa.array(lengths, pa.int32()),
        }
    )


def write(directory: Path, documents: pa.Table, *, name: str = "0") -> ShardEntry:
    num_tokens = sum(documents["tokens"].to_pylist())
    tokens = [np.arange(num_tokens, dtype=U2)]
    return write_shard(directory / name, documents, directory=directory, tokens=tokens, dtype=U2)


def read(directory: Path, name: str) -> pa.RecordBatch:
    with pa.ipc.open_file(pa.py_buffer(map_bytes(directory / f"{name}.arrow"))) as reader:
        assert reader.num_record_batches == 1
        return reader.get_batch(0)


def test_columns_are_kept_in_one_batch(tmp_path: Path) -> None:
    parts = [["b", "a"], ["a", None, "c"]]
    language = pa.chunked_array([pa.array(part).dictionary_encode() for part in parts])
    documents = table([1] * 5, language=language, url=pa.array(["x"] * 5), score=[0.5] * 5)
    write(tmp_path, documents)
    batch = read(tmp_path, "0")
    assert batch.schema.names == [*REQUIRED.names, "language", "url", "score"]
    assert batch.schema.field("url").type == pa.large_string()
    assert batch.schema.field("language").type == pa.dictionary(pa.int32(), pa.large_string())
    assert batch["language"].dictionary.to_pylist() == ["b", "a", "c"]
    assert batch["language"].to_pylist() == ["b", "a", "a", None, "c"]


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["zh", "en", None]), max_size=6), st.integers(0, 6))
def test_bytes_depend_on_the_rows_alone(
    tmp_path_factory: pytest.TempPathFactory, values: list[str | None], cut: int
) -> None:
    """However the rows were gathered, and whatever their dictionaries hold besides."""
    folder = tmp_path_factory.getbasetemp()
    whole = pa.array(values, pa.string())
    padded = pa.array(["unused", *values], pa.string()).dictionary_encode()[1:]
    pieces = pa.chunked_array([padded[:cut], padded[cut:]])
    column = whole.dictionary_encode()
    lengths = [1] * len(values)
    first = write(folder, table(lengths, language=column), name="w0")
    second = write(folder, table(lengths, language=pieces), name="w1")
    assert first.files == second.files


def test_empty_shard(tmp_path: Path) -> None:
    entry = write_shard(
        tmp_path / "0",
        table([], url=pa.array([], pa.string())),
        directory=tmp_path,
        tokens=[],
        dtype=U2,
    )
    assert (entry.documents, entry.tokens) == (0, 0)
    assert [entry.files[suffix].bytes for suffix in ("bin", "idx")] == [0, 42]
    shard = Shard.open(tmp_path, entry, dtype=U2)
    assert (len(shard), len(shard.tokens), len(shard.offsets)) == (0, 0, 0)
    assert shard.documents.column_names == [*REQUIRED.names, "url"]
