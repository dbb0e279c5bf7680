import errno
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from shards.errors import DamageError, UserError
from shards.storage import address
from shards.storage.files import (
    atomic_write,
    crc32c,
    crc32c_of,
    files,
    map_bytes,
    read_json,
    size,
    write_json,
)
from shards.storage.remote import RemotePath


@pytest.fixture
def folder() -> Iterator[RemotePath]:
    path = RemotePath(f"memory://{uuid.uuid4().hex}")
    yield path
    path.remove([*path.files()])


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses requested, none of which takes any time."""
    made: list[float] = []
    monkeypatch.setattr("shards.storage.address.time.sleep", made.append)
    return made


class Fault:
    """A method of the file system that fails the first times it is called."""

    def __init__(self, name: str, error: Exception, times: int) -> None:
        self.calls = 0
        self._method: Callable[..., Any] = getattr(MemoryFileSystem, name)
        self._error = error
        self._times = times

    def __get__(self, system: Any, _: type) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls <= self._times:
                raise self._error
            return self._method(system, *arguments, **named)

        return call


def test_files_are_written_whole_under_their_names(folder: RemotePath) -> None:
    data = np.random.default_rng(0).integers(0, 256, 9 << 20, np.uint8)
    with atomic_write(folder / "a/b") as handle:
        handle.write(data)
        assert files(folder) == {}
    assert files(folder) == {"a/b": len(data)}
    assert handle.entry.crc32c == crc32c_of(data) == crc32c(folder / "a/b")
    assert np.array_equal(map_bytes(folder / "a/b"), data)
    assert (folder / "a/b").read(5, 9) == data[5:9].tobytes()
    assert write_json(folder / "a/c", {"k": 1}).bytes == size(folder / "a/c")
    assert read_json(folder / "a/c") == {"k": 1}
    (folder / "a").remove(["b", "c"])
    assert files(folder) == {}


def test_a_block_that_fails_leaves_nothing(
    folder: RemotePath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fail() -> None:
        with atomic_write(folder / "a") as handle:
            handle.write(b"x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert files(folder) == {}
    assert not list(tmp_path.iterdir())


def test_a_missing_file_is_reported(folder: RemotePath) -> None:
    assert not (folder / "x").exists()
    for read in (size, map_bytes, read_json, crc32c):
        with pytest.raises(DamageError, match=r"memory://\w+/x is missing"):
            read(folder / "x")
    with pytest.raises(FileNotFoundError):
        (folder / "x").unlink()
    (folder / "x").unlink(missing_ok=True)


def test_only_one_of_two_writers_creates_the_file(folder: RemotePath) -> None:
    path = folder / "lock"
    assert path.create(b"mine")
    assert path.create(b"mine")  # the answer to the first attempt may have been lost
    assert not path.create(b"other")
    assert path.read() == b"mine"


@pytest.mark.parametrize(
    ("method", "do"),
    [
        ("cat_file", lambda path: path.read()),
        ("cat_ranges", lambda path: path.read(1, 2)),
        ("info", lambda path: path.size()),
        ("pipe_file", lambda path: path.write(b"abc")),
        ("put_file", lambda path: path.upload(Path(__file__))),
        ("find", lambda path: path.parent.files()),
        ("rm_file", lambda path: path.unlink()),
    ],
)
def test_a_transient_failure_is_retried(
    folder: RemotePath,
    monkeypatch: pytest.MonkeyPatch,
    waits: list[float],
    caplog: pytest.LogCaptureFixture,
    method: str,
    do: Callable[[RemotePath], object],
) -> None:
    path = folder / "a"
    path.write(b"abc")
    fault = Fault(method, OSError(errno.EBUSY, "Reduce your rate"), times=3)
    monkeypatch.setattr(MemoryFileSystem, method, fault)
    with caplog.at_level(logging.INFO, "corpusmill"):
        do(path)
    assert fault.calls == 4
    assert waits == [0.5, 1.0, 2.0]
    assert "Reduce your rate; trying again in 0.5 s" in caplog.text


class Answer(OSError):
    """What S3 answers, as s3fs hands it on."""

    def __init__(self, code: str, status: int) -> None:
        super().__init__(code)
        about = {"HTTPStatusCode": status}
        self.response = {"Error": {"Code": code}, "ResponseMetadata": about}


@pytest.mark.parametrize(
    ("code", "status", "again"),
    [
        ("IncompleteBody", 400, True),
        ("SlowDown", 429, True),
        ("InternalError", 500, True),
        ("InvalidArgument", 400, False),
    ],
)
@pytest.mark.usefixtures("waits")
def test_which_answers_are_transient(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch, code: str, status: int, *, again: bool
) -> None:
    fault = Fault("pipe_file", Answer(code, status), times=1)
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", fault)
    with nullcontext() if again else pytest.raises(UserError, match=code):
        (folder / "a").write(b"abc")
    assert fault.calls == 1 + again


def test_retries_are_limited(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    fault = Fault("pipe_file", TimeoutError("too slow"), times=99)
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", fault)
    message = (
        r"^The file memory://\w+/a cannot be written \(too slow; tried 7 times within 31\.5 s\)"
    )
    with pytest.raises(UserError, match=message):
        (folder / "a").write(b"abc")
    assert tuple(waits) == address.WAITS


class NoCredentialsError(Exception):
    """As botocore names it."""


class ParamValidationError(Exception):
    """What botocore raises for the name of a bucket that cannot be one."""


@pytest.mark.parametrize(
    "error",
    [
        PermissionError("Access Denied"),
        NoCredentialsError(),
        ParamValidationError("Invalid bucket name"),
        OSError(errno.EINVAL, "no"),
    ],
)
def test_a_permanent_failure_is_reported_at_once(
    folder: RemotePath,
    monkeypatch: pytest.MonkeyPatch,
    waits: list[float],
    error: Exception,
) -> None:
    monkeypatch.setattr(MemoryFileSystem, "cat_file", Fault("cat_file", error, times=99))
    with pytest.raises(UserError, match="cannot be read"):
        (folder / "a").read()
    assert waits == []


def test_a_short_answer_is_requested_again(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    path = folder / "a"
    path.write(b"0123456789")
    whole = MemoryFileSystem.cat_ranges
    answers = [[b"01"], [b"012"]]
    monkeypatch.setattr(
        MemoryFileSystem, "cat_ranges", lambda *_, **__: answers.pop(0) if answers else whole
    )
    assert path.read(0, 3) == b"012"
    assert waits == [0.5]
