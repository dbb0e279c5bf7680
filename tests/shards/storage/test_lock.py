"""One process locks a folder, or several share it: on a disk, and behind a URL."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.storage import lease
from shards.storage.files import list_files
from shards.storage.lock import lock_dir
from shards.storage.remote import AnyPath, RemotePath

HOLD = """
import sys
from pathlib import Path
from shards.storage.lock import lock_dir
from shards.storage.remote import RemotePath
with lock_dir((RemotePath if "://" in sys.argv[1] else Path)(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def holding(folder: AnyPath) -> subprocess.Popen[str]:
    """Start a process that holds a folder's lock, and return the process."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.fixture(autouse=True)
def _settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "SETTLED_AFTER", 0.0)
    monkeypatch.setattr(lease, "RENEWED_AFTER", 0.02)


def held(folder: AnyPath) -> list[str]:
    """Return the holders whose files exist; those of a folder on a disk have no files."""
    return [] if isinstance(folder, Path) else list(list_files(folder))


@pytest.mark.slow
def test_a_folder_is_held_alone_or_shared(either: AnyPath) -> None:
    message = f"is being written by process {os.getpid()} on host"
    with lock_dir(either):
        for shared in (True, False):
            with pytest.raises(UserError, match=message), lock_dir(either, shared=shared):
                pytest.fail("it is held alone")
    with (
        lock_dir(either, shared=True),
        lock_dir(either, shared=True),
        pytest.raises(UserError, match="is being written by"),
        lock_dir(either),
    ):
        pytest.fail("it is shared")
    with lock_dir(either):
        pass
    assert held(either) == []


@pytest.mark.slow
def test_who_waits_gets_the_folder_when_it_is_free(either: AnyPath) -> None:
    taken: list[str] = []

    def take() -> None:
        with lock_dir(either, wait=True):
            taken.append("second")

    with lock_dir(either):
        thread = threading.Thread(target=take)
        thread.start()
        # Behind a URL, the second process has by then seen a renewal, and tries again.
        time.sleep(0.2 if isinstance(either, Path) else 2.5)
        taken.append("first")
    thread.join()
    assert taken == ["first", "second"]
    assert held(either) == []


def test_a_lock_ends_with_its_block_and_is_not_inherited(tmp_path: Path) -> None:
    with lock_dir(tmp_path), subprocess.Popen(["sleep", "5"], close_fds=False) as child:
        with pytest.raises(UserError), lock_dir(tmp_path):
            pytest.fail("the same process cannot hold it twice")
        descriptors = {str(f.readlink()) for f in Path(f"/proc/{child.pid}/fd").iterdir()}
        child.kill()
    assert descriptors
    assert str(tmp_path / ".lock") not in descriptors
    with lock_dir(tmp_path):
        pass


def left_by_a_holder(folder: RemotePath, name: str = "alone", **changes: object) -> RemotePath:
    """Write the file of a holder, by default on a different machine, that never renews it."""
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


@pytest.mark.parametrize("shared", [True, False])
def test_a_holder_elsewhere_that_gives_a_sign_of_life(
    remote: RemotePath, monkeypatch: pytest.MonkeyPatch, *, shared: bool
) -> None:
    """The content does not matter, because a lease of a different version may have any content."""
    name = "alone" if shared else "shared-1"
    other = left_by_a_holder(remote, name)
    monkeypatch.setattr(lease.time, "sleep", lambda _: other.write(b"{}"))
    with (
        pytest.raises(UserError, match=r"process .* on host elsewhere"),
        lock_dir(remote, shared=shared),
    ):
        pytest.fail("it is held")
    assert held(remote) == [f".lock/{name}"]


def test_a_silent_holder_elsewhere_is_taken_over(
    remote: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by_a_holder(remote)
    monkeypatch.setattr(lease, "DEAD_AFTER", 0.5)
    with lock_dir(remote):
        assert holder_of(remote)["host"] != "elsewhere"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses made so far; a pause that waits for a sign of life raises TimeoutError."""
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
    folder = RemotePath(f"file://{tmp_path}")  # both processes see this folder
    with holding(folder) as child:
        assert holder_of(folder)["process"] == child.pid
        with pytest.raises(TimeoutError), lock_dir(folder):
            pass  # the child is alive
        assert pauses.pop() == 1
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, but not reaped: a zombie
        left = (folder / ".lock" / "alone").read()
        with lock_dir(folder):
            assert holder_of(folder)["process"] == os.getpid()
        child.wait()
        (folder / ".lock" / "alone").write(left)
        with lock_dir(folder):
            assert holder_of(folder)["process"] == os.getpid()
    assert pauses == [0, 0]


def test_a_lease_is_renewed(remote: RemotePath) -> None:
    with lock_dir(remote):
        before = (remote / ".lock" / "alone").read()
        end = time.monotonic() + 10
        while (remote / ".lock" / "alone").read() == before and time.monotonic() < end:
            time.sleep(0.02)
        assert (remote / ".lock" / "alone").read() != before


def test_a_process_that_lost_its_lease_exits(
    remote: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    exits: list[int] = []
    monkeypatch.setattr(lease.os, "_exit", exits.append)
    with lock_dir(remote):
        left_by_a_holder(remote, token="another")
        end = time.monotonic() + 10
        while not exits and time.monotonic() < end:
            time.sleep(0.02)
    assert exits
    assert set(exits) == {2}
