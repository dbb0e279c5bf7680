import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shards.errors import DamageError, UserError
from shards.storage.files import (
    FileEntry,
    Handle,
    atomic_write,
    crc32c,
    crc32c_of,
    map_bytes,
    read_json,
    shape_expected,
    size,
)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_file_appears_whole_with_its_entry(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "x.bin"
    with atomic_write(path) as handle:
        handle.write(b"ab")
        handle.write(np.array([1, 2], "<u2"))
        assert not path.exists()
        assert handle.tell() == 6
    assert path.read_bytes() == b"ab\x01\x00\x02\x00"
    assert handle.entry == FileEntry(bytes=6, crc32c=crc32c(path))
    assert names(path.parent) == ["x.bin"]


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_crc32c_continues(first: bytes, second: bytes) -> None:
    assert crc32c_of(memoryview(second), crc32c_of(bytearray(first))) == crc32c_of(first + second)


def test_crc32c_of_a_file_over_several_blocks(tmp_path: Path) -> None:
    content = np.random.default_rng(0).integers(0, 256, (4 << 20) + 7, np.uint8)
    (tmp_path / "x").write_bytes(content.tobytes())
    assert crc32c(tmp_path / "x") == crc32c_of(content)


def test_a_block_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def fail() -> None:
        with atomic_write(path) as handle:
            handle.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["x"]


def test_a_killed_writer_leaves_only_a_temporary_file(tmp_path: Path) -> None:
    code = """
import os, pathlib, sys
from shards.storage.files import atomic_write
with atomic_write(pathlib.Path(sys.argv[1])) as handle:
    handle.write(bytes(3 << 20))
    os._exit(9)
"""
    assert run(code, tmp_path / "x").returncode == 9
    (left,) = names(tmp_path)
    assert left.startswith(".tmp-")
    assert left.endswith("-x")


def test_a_full_disk_says_what_to_do() -> None:
    full = Path("/dev/full")
    with full.open("wb", buffering=0) as file:
        handle = Handle(file, full)
        with pytest.raises(UserError) as error:
            handle.write(b"x")
        assert re.fullmatch(
            r"no space left on the disk that holds /dev/full \([\d,]+ MB free\): make room and "
            r"run the same command again; finished work is kept\.",
            str(error.value),
        )
        with (
            pytest.raises(UserError, match="no space left"),
            pa.ipc.new_file(handle, pa.schema([("a", pa.int64())])) as sink,
        ):
            sink.write_table(pa.table({"a": [1]}))


def test_a_disk_that_fills_up_at_the_end_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="no space left on the disk"), atomic_write(tmp_path / "x"):
        pass
    assert names(tmp_path) == []


def test_a_file_in_the_way_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with (
        pytest.raises(
            UserError, match=r"file/x/y: File exists: a file is where a folder is needed"
        ),
        atomic_write(tmp_path / "file" / "x" / "y"),
    ):
        pytest.fail("the block must not run")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1e400]", "not JSON compliant"),
        ("[" + "9" * 5000 + "]", "digits"),
        ('["\\ud800"]', "surrogates not allowed"),
        ('{"\\uDFff\\ud800": 1}', "surrogates not allowed"),
        ("[" * 65 + "]" * 65, "nested 65 deep"),
        ('{"a":' * 100 + "1" + "}" * 100, "nested 100 deep"),
        ("[" * 100_000 + "]" * 100_000, "recursion"),
    ],
)
def test_what_python_reads_and_no_file_of_ours_has(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(DamageError, match=rf"x\.json holds no valid JSON \(.*{why}") as raised:
        read_json(tmp_path / "x.json")
    assert len(str(raised.value)) < 500


def test_odd_json_that_is_sound(tmp_path: Path) -> None:
    value: list[object] = ["[{" * 100, "\\ud800", "\U0001f600", 1e308, 2**70]
    (tmp_path / "x.json").write_text(json.dumps([value, "[" * 63]))
    assert read_json(tmp_path / "x.json") == [value, "[" * 63]
    (tmp_path / "x.json").write_text("[" * 64 + "]" * 64)
    assert len(read_json(tmp_path / "x.json")) == 1


def test_odd_shapes_are_damage(tmp_path: Path) -> None:
    values: list[object] = [None, 1, [], {}, {"a": 1}, {"a": []}, {"a": [{}]}, {"a": [{"b": "x"}]}]
    for value in values:
        with (
            pytest.raises(DamageError, match=r"x\.json does not hold what .*\): mend it\.$"),
            shape_expected(tmp_path / "x.json", "mend it"),
        ):
            assert int(value["a"][0]["b"]) < 0  # type: ignore[index,call-overload]
    with pytest.raises(UserError, match="as it is"), shape_expected(tmp_path / "x.json", "mend it"):
        raise UserError("as it is")


def test_missing_files_are_damage(tmp_path: Path) -> None:
    for read in (read_json, size, map_bytes):
        with pytest.raises(DamageError, match=r"x\.json is missing"):
            read(tmp_path / "x.json")


def test_map_bytes_copies_nothing_and_accepts_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    (tmp_path / "empty").write_bytes(b"")
    view = map_bytes(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"abd")  # the same file, so the mapping sees it
    assert view.tobytes() == b"abd"
    assert not view.flags.writeable
    assert map_bytes(tmp_path / "empty").size == 0
