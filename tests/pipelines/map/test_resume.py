import dataclasses
from pathlib import Path

import pytest

from pipelines.inputs.files import InputFile
from pipelines.inputs.split import split_file
from pipelines.map.mapper import MapTask
from pipelines.map.resume import is_usable
from shards.storage.files import crc32c_of
from tests.pipelines.mapped import CONTENT, READING, SPLIT_BYTES, leave, record, splits, touch


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_finished_split_is_used_while_its_bytes_are_the_same(
    tmp_path: Path, file: Path, index: int
) -> None:
    task = MapTask(name="t", split=splits(file)[index])
    assert not is_usable(task, tmp_path, reading=READING)
    leave(tmp_path, "t", record(task.split, stems=["t-0000", "t-0001"]))
    assert is_usable(task, tmp_path, reading=READING)
    touch(file)
    later = MapTask(name="t", split=splits(file)[index])
    assert later.split.mtime_ns != task.split.mtime_ns
    assert is_usable(later, tmp_path, reading=READING)
    elsewhere = MapTask(
        name="t", split=dataclasses.replace(task.split, path="/nowhere", mtime_ns=7)
    )
    assert is_usable(elsewhere, tmp_path, reading=None)
    changed = bytearray(CONTENT)
    changed[task.split.end - 1] ^= 1
    file.write_bytes(changed)
    touch(file)
    assert not is_usable(MapTask(name="t", split=splits(file)[index]), tmp_path, reading=READING)


@pytest.mark.parametrize(
    ("etag", "crc32c", "used"),
    [
        (None, 0, True),  # the etag of now: nothing is read
        ("other", 0, False),
        ("other", crc32c_of(CONTENT[:SPLIT_BYTES]), True),
        ("", 0, False),
    ],
)
def test_a_file_behind_a_url_is_known_by_its_etag(
    tmp_path: Path, remote: InputFile, etag: str | None, crc32c: int, used: bool
) -> None:
    split = split_file(remote, SPLIT_BYTES)[0]
    before = split if etag is None else dataclasses.replace(split, etag=etag)
    leave(tmp_path, "t", record(before, crc32c=crc32c))
    assert is_usable(MapTask(name="t", split=split), tmp_path, reading=READING) is used
