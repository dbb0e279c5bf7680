import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator

import pytest

from shards.errors import UserError
from shards.storage import lease
from shards.storage.files import files
from shards.storage.lock import locked
from shards.storage.remote import RemotePath


@pytest.fixture
def folder() -> Iterator[RemotePath]:
    path = RemotePath(f"memory://{uuid.uuid4().hex}")
    yield path
    path.remove_all()


def holder(folder: RemotePath, name: str = "alone", **changes: object) -> RemotePath:
    """The file of a holder that does not write it again; of this process, if not told otherwise."""
    state = {
        "token": "0",
        "host": "elsewhere",
        "process": os.getpid(),
        "started": "then",
        "count": 0,
        **changes,
    }
    path = folder / ".lock" / name
    path.write(json.dumps(state).encode())
    return path


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_folder_is_held_while_the_block_runs(folder: RemotePath) -> None:
    with locked(folder):
        assert list(files(folder)) == [".lock/alone"]
    assert files(folder) == {}


def test_a_second_holder_waits_for_a_sign_of_life_and_is_refused(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEWED_AFTER", 0.2)
    words = rf"is being written by process {os.getpid()} on host"
    with locked(folder), pytest.raises(UserError, match=words), locked(folder):
        pass
    assert files(folder) == {}


def test_several_hold_a_folder_together_and_none_alone(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder(folder, "shared-1")
    with locked(folder, shared=True):
        assert len(files(folder)) == 2
    monkeypatch.setattr(lease, "DEAD_AFTER", 2.0)
    beat = holder(folder, "shared-1")

    def once(_: float) -> None:
        beat.write(b"{}")

    monkeypatch.setattr(lease.time, "sleep", once)
    with pytest.raises(UserError, match="is being written by"), locked(folder):
        pass
    assert list(files(folder)) == [".lock/shared-1"]


def test_who_would_share_finds_who_is_alone(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = holder(folder)
    monkeypatch.setattr(lease.time, "sleep", lambda _: beat.write(b"{}"))
    with (
        pytest.raises(UserError, match=r"process .* on host elsewhere"),
        locked(folder, shared=True),
    ):
        pass
    assert list(files(folder)) == [".lock/alone"]


def test_a_dead_process_of_this_machine_holds_nothing(folder: RemotePath) -> None:
    process = ended_process()
    holder(folder, host=lease.socket.gethostname(), process=process, started="boot 1")
    with locked(folder):
        assert json.loads((folder / ".lock" / "alone").read())["process"] == os.getpid()


def test_a_silent_holder_elsewhere_is_taken_over(
    folder: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder(folder)
    monkeypatch.setattr(lease, "DEAD_AFTER", 0.5)
    with locked(folder):
        assert json.loads((folder / ".lock" / "alone").read())["host"] != "elsewhere"


def test_a_lease_is_renewed(folder: RemotePath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWED_AFTER", 0.02)
    with locked(folder):
        before = (folder / ".lock" / "alone").read()
        end = time.monotonic() + 10
        while (folder / ".lock" / "alone").read() == before and time.monotonic() < end:
            time.sleep(0.02)
        assert (folder / ".lock" / "alone").read() != before


def test_who_lost_its_lease_ends(folder: RemotePath, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[int] = []
    monkeypatch.setattr(lease, "RENEWED_AFTER", 0.02)
    monkeypatch.setattr(lease.os, "_exit", ends.append)
    with locked(folder):
        holder(folder, token="another")
        end = time.monotonic() + 10
        while not ends and time.monotonic() < end:
            time.sleep(0.02)
    assert ends
    assert set(ends) == {2}
