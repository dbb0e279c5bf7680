import dataclasses
from pathlib import Path

import pytest

from pipelines.inputs.files import InputFile
from pipelines.inputs.split import split_file
from pipelines.map.mapper import MapTask
from pipelines.map.resume import changed_versions, is_usable
from shards.storage.files import crc32c_of
from tests.pipelines.mapped import CONTENT, LEFT, READING, SPLIT_BYTES, leave, record, splits, touch


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


def test_changed_bytes_concern_only_their_split(tmp_path: Path, file: Path) -> None:
    first, second, *_ = splits(file)
    for name, split in (("one", first), ("two", second)):
        leave(tmp_path, name, record(split))
    changed = bytearray(CONTENT)
    changed[second.start] ^= 1
    file.write_bytes(changed)
    touch(file)
    first, second, *_ = splits(file)
    assert is_usable(MapTask(name="one", split=first), tmp_path, reading=READING)
    assert not is_usable(MapTask(name="two", split=second), tmp_path, reading=READING)


@pytest.mark.parametrize("suffix", LEFT)
@pytest.mark.parametrize("content", [None, b"123", b"12345", b"1334", b"a rejected recorD"])
def test_a_split_whose_segments_are_missing_or_changed_is_not_finished(
    tmp_path: Path,
    file: Path,
    caplog: pytest.LogCaptureFixture,
    suffix: str,
    content: bytes | None,
) -> None:
    task = MapTask(name="t", split=splits(file)[0])
    leave(tmp_path, "t", record(task.split, stems=["t-0000", "t-0001"]))
    victim = tmp_path / f"t-0001.{suffix}"
    if content is None:
        victim.unlink()
    else:
        victim.write_bytes(content)
    assert not is_usable(task, tmp_path, reading=READING)
    assert f"{victim} is missing or was changed after it was written" in caplog.text


def test_behind_a_url_one_listing_shows_whether_segments_are_there(
    tmp_path: Path, file: Path
) -> None:
    task = MapTask(name="t", split=splits(file)[0])
    leave(tmp_path, "t", record(task.split, stems=["t-0000"]))
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("t*")}
    assert len(sizes) == 4
    for path in tmp_path.glob("t-*"):
        path.unlink()  # they are not asked for
    assert is_usable(task, tmp_path, reading=READING, sizes=sizes)
    for name in sizes:
        cut = {**sizes, name: 3} if name != "t.json" else {}
        assert not is_usable(task, tmp_path, reading=READING, sizes=cut)


def test_changed_versions_are_reported_with_the_segments_they_cost(
    tmp_path: Path, file: Path
) -> None:
    chain = splits(file)
    for number, split in enumerate(chain):
        leave(tmp_path, f"old{number}", record(split, stems=[f"{number}a", f"{number}b"]))
    tasks = [MapTask(name=f"new{number}", split=split) for number, split in enumerate(chain[:2])]
    now = {"ftfy": "6.4", "unicode": "15"}
    assert changed_versions(tasks, tmp_path, now, all_tasks=tasks) == {
        "ftfy (6.3, now 6.4)": 4,
        "unicode (None, now 15)": 4,
    }


def test_nothing_is_reported_if_nothing_changed(tmp_path: Path, file: Path) -> None:
    chain = splits(file)
    leave(tmp_path, "old", record(chain[0], stems=["a"]))
    old = [MapTask(name="old", split=chain[0])]
    same, other = ([MapTask(name="n", split=split)] for split in chain[:2])
    for todo, known, version in (
        ([], [], "9"),
        (other, other, "9"),
        (same, same, "6.3"),
        (same, [*same, *old], "9"),
    ):
        now = {"ftfy": version}
        assert changed_versions(todo, tmp_path, now, all_tasks=known) == {}
