import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shards.datasets import put_shard


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["zh", "en", None]), max_size=6), st.integers(0, 6))
def test_bytes_depend_on_the_rows_alone(
    tmp_path_factory: pytest.TempPathFactory, values: list[str | None], cut: int
) -> None:
    """Bytes do not depend on how rows were gathered, or on unused entries of dictionaries."""
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
