import dataclasses
from pathlib import Path

import pytest

from pipelines.engine.records import complete_files, finished_record, read_record
from pipelines.map.mapper import SplitRecord
from shards.errors import DamageError
from shards.manifest import ShardEntry, TableEntry
from shards.storage.files import FileEntry, canonical, crc32c_of, read_json, write_json
from tests.pipelines.mapped import leave, record, splits


def test_a_record_comes_back_as_it_was_left(tmp_path: Path, file: Path) -> None:
    left = record(splits(file)[1], stems=["x"])
    leave(tmp_path, "t", left)
    assert read_record(SplitRecord, tmp_path / "t.json") == left
    assert finished_record(SplitRecord, tmp_path / "t.json") == left
    raw = (tmp_path / "t.json").read_text()
    (tmp_path / "t.json").write_text(raw.replace('"unsampled": 0', '"unsampled": 1'))
    assert finished_record(SplitRecord, tmp_path / "t.json") is None
    assert finished_record(SplitRecord, tmp_path / "none.json") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", r"t\.json\.\w+ is missing: delete this file and run the command again$"),
        ("[]", r"t\.json is \[\], not of type dict: delete this file"),
        ("{", r"t\.json holds no valid JSON"),
        ("changed", r"t\.json was changed after it was written: delete this file"),
    ],
)
def test_a_file_that_is_no_record_is_reported(
    tmp_path: Path, file: Path, content: str, message: str
) -> None:
    path = tmp_path / "t.json"
    if content == "changed":
        (split, *_) = splits(file)
        leave(tmp_path, "t", record(split))
        content = path.read_text().replace('"start": 0', '"start": 1')
    path.write_text(content)
    with pytest.raises(DamageError, match=message):
        read_record(SplitRecord, path)


@pytest.mark.parametrize("stem", ["../x", "/etc/x", "a/b", "a/../../x"])
def test_no_record_names_a_file_outside_of_its_folder(
    tmp_path: Path, file: Path, stem: str
) -> None:
    leave(tmp_path, "t", record(splits(file)[0], stems=["x"]))
    content = read_json(tmp_path / "t.json")
    content["segments"][0]["stem"] = stem
    del content["seal"]
    write_json(tmp_path / "t.json", {**content, "seal": crc32c_of(canonical(content))})
    assert finished_record(SplitRecord, tmp_path / "t.json") is None
    with pytest.raises(DamageError, match=r"t\.json.segments\[0\]: .* is no (path|name)"):
        read_record(SplitRecord, tmp_path / "t.json")


def test_files_are_complete_if_sizes_and_checksums_match(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"12345")
    (tmp_path / "00000.bin").write_bytes(b"123")
    (tmp_path / "00000.idx").write_bytes(b"")
    table = TableEntry(path="a.parquet", rows=1, bytes=5, crc32c=crc32c_of(b"12345"))
    files = {
        "bin": FileEntry(bytes=3, crc32c=crc32c_of(b"123")),
        "idx": FileEntry(bytes=0, crc32c=0),
    }
    shard = ShardEntry(path="00000", documents=1, tokens=1, files=files)
    assert complete_files(tmp_path, [])
    assert complete_files(tmp_path, [table, shard])
    assert not complete_files(tmp_path, [table, dataclasses.replace(shard, path="1")])
    assert not complete_files(tmp_path, [dataclasses.replace(table, bytes=6), shard])
    assert not complete_files(tmp_path, [dataclasses.replace(table, crc32c=6), shard])
    (tmp_path / "00000.bin").write_bytes(b"124")
    assert not complete_files(tmp_path, [table, shard])
    (tmp_path / "00000.bin").write_bytes(b"123")
    assert complete_files(tmp_path, [table, shard])
    (tmp_path / "00000.idx").unlink()
    assert not complete_files(tmp_path, [table, shard])
