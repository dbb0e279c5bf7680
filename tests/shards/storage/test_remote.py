import errno
import logging
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from shards.errors import UserError
from shards.storage import address
from shards.storage.remote import RemotePath


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits requested so far, none of which takes any time."""
    made: list[float] = []
    monkeypatch.setattr("shards.storage.address.time.sleep", made.append)
    return made


class Fault:
    """A method of the file system that fails a number of times before it works."""

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


def test_parts_of_files_are_read_and_files_deleted(remote: RemotePath) -> None:
    for name in ("a/b", "a/c", "a/d"):
        (remote / name).write(b"0123456789")
    assert (remote / "a/b").read(5, 9) == b"5678"
    (remote / "a").remove(["b", "c"])
    assert remote.files() == {"a/d": 10}
    (remote / "a/d").unlink()
    assert not (remote / "a/d").exists()
    with pytest.raises(FileNotFoundError):
        (remote / "a/d").unlink()
    (remote / "a/d").unlink(missing_ok=True)


def test_only_one_of_two_writers_creates_the_file(remote: RemotePath) -> None:
    path = remote / "lock"
    assert path.create(b"mine")
    assert path.create(b"mine")  # the response to the first attempt may have been lost
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
    remote: RemotePath,
    monkeypatch: pytest.MonkeyPatch,
    waits: list[float],
    caplog: pytest.LogCaptureFixture,
    method: str,
    do: Callable[[RemotePath], object],
) -> None:
    path = remote / "a"
    path.write(b"abc")
    fault = Fault(method, OSError(errno.EBUSY, "Reduce your rate"), times=3)
    monkeypatch.setattr(MemoryFileSystem, method, fault)
    with caplog.at_level(logging.INFO, "corpusmill"):
        do(path)
    assert fault.calls == 4
    assert waits == [0.5, 1.0, 2.0]
    assert "Reduce your rate; trying again in 0.5 s" in caplog.text


class Answer(OSError):
    """An error response of S3, as s3fs raises it."""

    def __init__(self, code: str, status: int) -> None:
        super().__init__(code)
        about = {"HTTPStatusCode": status}
        self.response = {"Error": {"Code": code}, "ResponseMetadata": about}


class NoCredentialsError(Exception):
    """An error with the name that botocore gives it."""


class ParamValidationError(Exception):
    """The error that botocore raises for an invalid bucket name."""


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (Answer("IncompleteBody", 400), True),
        (Answer("SlowDown", 429), True),
        (Answer("InternalError", 500), True),
        (Answer("InvalidArgument", 400), False),
        (PermissionError("Access Denied"), False),
        (NoCredentialsError(), False),
        (ParamValidationError("Invalid bucket name"), False),
        (OSError(errno.EINVAL, "no"), False),
    ],
    ids=repr,
)
@pytest.mark.usefixtures("waits")
def test_which_errors_are_transient(
    remote: RemotePath, monkeypatch: pytest.MonkeyPatch, error: Exception, *, again: bool
) -> None:
    fault = Fault("pipe_file", error, times=1)
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", fault)
    with nullcontext() if again else pytest.raises(UserError, match="cannot be written"):
        (remote / "a").write(b"abc")
    assert fault.calls == 1 + again


def test_retries_are_limited(
    remote: RemotePath, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    fault = Fault("pipe_file", TimeoutError("too slow"), times=99)
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", fault)
    message = (
        r"^The file memory://\w+/a cannot be written \(too slow; tried 7 times within 31\.5 s\)"
    )
    with pytest.raises(UserError, match=message):
        (remote / "a").write(b"abc")
    assert tuple(waits) == address.WAITS


def test_a_short_answer_is_requested_again(
    remote: RemotePath, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    path = remote / "a"
    path.write(b"0123456789")
    whole = MemoryFileSystem.cat_ranges
    answers = [[b"01"], [b"012"]]
    monkeypatch.setattr(
        MemoryFileSystem, "cat_ranges", lambda *_, **__: answers.pop(0) if answers else whole
    )
    assert path.read(0, 3) == b"012"
    assert waits == [0.5]
