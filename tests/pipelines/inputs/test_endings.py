import pytest

from pipelines.inputs.endings import JSON_FILES, TEXT_FILES
from pipelines.readers.compressed import SUFFIXES


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_compression_that_is_read_counts(suffix: str) -> None:
    assert f"*.jsonl{suffix}" in JSON_FILES
    assert f"*.txt{suffix}" in TEXT_FILES
