from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shards.format import REQUIRED
from shards.reader import Shard
from tests.shards.datasets import put_shard


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["zh", "en", None]), max_size=6), st.integers(0, 6))
def test_bytes_depend_on_the_rows_alone(
    tmp_path_factory: pytest.TempPathFactory, values: list[str | None], cut: int
) -> None:
    """However the rows were gathered, and whatever their dictionaries hold besides."""
    folder = tmp_path_factory.getbasetemp()
    whole = pa.array(values, pa.string()).dictionary_encode()
    padded = pa.array(["unused", *values], pa.string()).dictionary_encode()[1:]
    pieces = pa.chunked_array([padded[:cut], padded[cut:]])
    documents = [[1]] * len(values)
    entries = [
        put_shard(folder, f"w{number}", documents, language=column)
        for number, column in enumerate((whole, pieces))
    ]
    assert entries[0].files == entries[1].files


def test_empty_shard(tmp_path: Path) -> None:
    entry = put_shard(tmp_path, "0", [], url=pa.array([], pa.string()))
    assert (entry.documents, entry.tokens) == (0, 0)
    assert [entry.files[suffix].bytes for suffix in ("bin", "idx")] == [0, 42]
    shard = Shard.open(tmp_path, entry, dtype=np.dtype("<u2"))
    assert (len(shard), len(shard.tokens), len(shard.offsets)) == (0, 0, 0)
    assert shard.documents.column_names == [*REQUIRED.names, "url"]
    assert shard.documents.schema.field("url").type == pa.large_string()
