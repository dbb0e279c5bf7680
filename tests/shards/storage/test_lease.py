import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.storage import lease
from shards.storage.files import files
from shards.storage.lock import locked
from shards.storage.remote import RemotePath


@pytest.fixture(autouse=True)
def _settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "SETTLED_AFTER", 0.0)


@pytest.fixture
def folder() -> Iterator[RemotePath]:
    path = RemotePath(f"memory://{uuid.uuid4().hex}")
    yield path
    path.remove([*path.files()])


def left_by_a_holder(folder: RemotePath, name: str = "alone", **changes: object) -> RemotePath:
    """The file of a holder that never renews it, by default a process of another machine."""
    state = {
        "token": "0",
        "host": "elsewhere",
        "process": os.getpid(),
        "count": 0,
        **changes,
    }
    path = folder / ".lock" / name
    path.write(json.dumps(state).encode())
    return path


def holder_of(folder: RemotePath) -> dict[str, object]:
    state: dict[str, object] = json.loads((folder / ".lock" / "alone").read())
    return state


def test_a_second_holder_waits_for_a_sign_of_life_and_is_refused(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEWED_AFTER", 0.2)
    message = rf"is being written by process {os.getpid()} on host"
    with locked(folder), pytest.raises(UserError, match=message), locked(folder):
        pass
    assert files(folder) == {}


@pytest.mark.slow
def test_who_waits_gets_the_folder_when_it_is_free(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEWED_AFTER", 0.2)
    taken: list[str] = []

    def take() -> None:
        with locked(folder, wait=True):
            taken.append("second")

    with locked(folder):
        thread = threading.Thread(target=take)
        thread.start()
        time.sleep(2.5)  # the second has seen a renewal, and tries again
        taken.append("first")
    thread.join()
    assert taken == ["first", "second"]
    assert files(folder) == {}


def test_several_hold_a_folder_together_and_none_alone(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = left_by_a_holder(folder, "shared-1")
    with locked(folder, shared=True):
        assert len(files(folder)) == 2
    monkeypatch.setattr(lease.time, "sleep", lambda _: shared.write(b"{}"))
    with pytest.raises(UserError, match="is being written by"), locked(folder):
        pass
    assert list(files(folder)) == [".lock/shared-1"]


def test_a_shared_lock_is_refused_while_another_holds_the_folder_alone(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = left_by_a_holder(folder)
    monkeypatch.setattr(lease.time, "sleep", lambda _: alone.write(b"{}"))
    with (
        pytest.raises(UserError, match=r"process .* on host elsewhere"),
        locked(folder, shared=True),
    ):
        pass
    assert list(files(folder)) == [".lock/alone"]


def test_a_silent_holder_elsewhere_is_taken_over(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by_a_holder(folder)
    monkeypatch.setattr(lease, "DEAD_AFTER", 0.5)
    with locked(folder):
        assert holder_of(folder)["host"] != "elsewhere"


HOLD = """
import sys
from shards.storage.lock import locked
from shards.storage.remote import RemotePath
with locked(RemotePath(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made; TimeoutError ends the one for a sign of life."""
    made: list[float] = []

    def sleep(seconds: float) -> None:
        made.append(seconds)
        if seconds:
            raise TimeoutError("waits for a sign of life")

    monkeypatch.setattr(lease.time, "sleep", sleep)
    return made


def test_a_killed_process_of_this_machine_is_taken_over_at_once(
    tmp_path: Path, pauses: list[float]
) -> None:
    (tmp_path / ".lock").mkdir()
    folder = RemotePath(f"file://{tmp_path}")  # what two processes both see
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        assert holder_of(folder)["process"] == child.pid
        with pytest.raises(TimeoutError), locked(folder):
            pass  # it lives
        assert pauses.pop() == 1
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and not reaped: a zombie
        left = (folder / ".lock" / "alone").read()
        with locked(folder):
            assert holder_of(folder)["process"] == os.getpid()
        child.wait()
        (folder / ".lock" / "alone").write(left)
        with locked(folder):
            assert holder_of(folder)["process"] == os.getpid()
    assert pauses == [0, 0]


def test_a_lease_is_renewed(folder: RemotePath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWED_AFTER", 0.02)
    with locked(folder):
        before = (folder / ".lock" / "alone").read()
        end = time.monotonic() + 10
        while (folder / ".lock" / "alone").read() == before and time.monotonic() < end:
            time.sleep(0.02)
        assert (folder / ".lock" / "alone").read() != before


def test_a_process_that_lost_its_lease_exits(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    exits: list[int] = []
    monkeypatch.setattr(lease, "RENEWED_AFTER", 0.02)
    monkeypatch.setattr(lease.os, "_exit", exits.append)
    with locked(folder):
        left_by_a_holder(folder, token="another")
        end = time.monotonic() + 10
        while not exits and time.monotonic() < end:
            time.sleep(0.02)
    assert exits
    assert set(exits) == {2}
