from pathlib import PurePosixPath

import pytest

from pipelines.inputs.endings import JSON_FILES, TEXT_FILES
from pipelines.readers.compressed import SUFFIXES


@pytest.mark.parametrize(
    ("name", "json", "text"),
    [
        ("a.json", True, True),
        ("a.jsonl.zst", True, True),
        ("a.ndjson.bz2", True, True),
        ("a.txt.gz", False, True),
        ("a.parquet", False, True),
        ("a.parquet.gz", False, False),
        ("a.csv", False, False),
        ("json", False, False),
    ],
)
def test_the_files_of_a_folder_that_count(name: str, json: bool, text: bool) -> None:
    path = PurePosixPath("folder", name)
    assert any(path.match(pattern) for pattern in JSON_FILES) is json
    assert any(path.match(pattern) for pattern in TEXT_FILES) is text


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_compression_that_is_read_counts(suffix: str) -> None:
    assert f"*.jsonl{suffix}" in JSON_FILES
    assert f"*.txt{suffix}" in TEXT_FILES
