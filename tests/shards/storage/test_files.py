import errno
import json
import os
import re
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
    file_size,
    json_errors_explained,
    list_files,
    map_bytes,
    read_json,
    write_json,
)
from shards.storage.remote import AnyPath


def test_a_file_appears_whole_with_its_entry(either: AnyPath) -> None:
    path = either / "deep" / "er" / "x.bin"
    data = np.random.default_rng(0).integers(0, 256, 9 << 20, np.uint8)
    with atomic_write(path) as handle:
        handle.write(b"ab")
        handle.write(np.array([1, 2], "<u2"))
        handle.write(data)
        assert list_files(either) == {}
        assert handle.tell() == 6 + len(data)
    content = map_bytes(path)
    assert content.tobytes() == b"ab\x01\x00\x02\x00" + data.tobytes()
    assert handle.entry == FileEntry(bytes=len(content), crc32c=crc32c_of(content))
    assert crc32c(path) == handle.entry.crc32c
    assert list_files(either, unfinished=True) == {"deep/er/x.bin": len(content)}
    assert write_json(either / "y", {"k": 1}).bytes == file_size(either / "y")
    assert read_json(either / "y") == {"k": 1}


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_crc32c_continues(first: bytes, second: bytes) -> None:
    assert crc32c_of(memoryview(second), crc32c_of(bytearray(first))) == crc32c_of(first + second)


def test_a_block_that_fails_leaves_the_old_file(
    either: AnyPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    write_json(either / "x", "old")

    def fail() -> None:
        with atomic_write(either / "x") as handle:
            handle.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert read_json(either / "x") == "old"
    left = [*tmp_path.iterdir()]
    assert left == ([either / "x"] if either == tmp_path else [])


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
    assert not list(tmp_path.iterdir())


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
    with pytest.raises(DamageError, match=rf"x\.json is not valid JSON \(.*{why}") as raised:
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
            pytest.raises(
                DamageError, match=r"x\.json does not have the content that .*\): mend it\.$"
            ),
            json_errors_explained(tmp_path / "x.json", "mend it"),
        ):
            assert int(value["a"][0]["b"]) < 0  # type: ignore[index,call-overload]
    with (
        pytest.raises(UserError, match="as it is"),
        json_errors_explained(tmp_path / "x.json", "mend it"),
    ):
        raise UserError("as it is")


def test_a_missing_file_is_damage(either: AnyPath) -> None:
    for read in (read_json, file_size, map_bytes, crc32c):
        with pytest.raises(DamageError, match=rf"{either}/x is missing"):
            read(either / "x")
