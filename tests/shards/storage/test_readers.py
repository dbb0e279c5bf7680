import os
import signal
from pathlib import Path

import pytest

from shards.storage.readers import Hold, admit_readers, excluded
from shards.storage.remote import RemotePath


def is_free(folder: Path, name: str) -> bool:
    with excluded(folder, name) as free:
        return free


def test_what_is_held_is_not_free(tmp_path: Path) -> None:
    admit_readers(tmp_path)
    first, second = Hold.on(tmp_path, ["a", "b"]), Hold.on(tmp_path, ["b"])
    assert [is_free(tmp_path, name) for name in "abc"] == [False, False, True]
    del first
    assert [is_free(tmp_path, name) for name in "abc"] == [True, False, True]
    del second
    assert is_free(tmp_path, "b")


def test_nobody_takes_hold_of_what_is_excluded(tmp_path: Path) -> None:
    with excluded(tmp_path, "a") as free:
        assert free
        with pytest.raises(BlockingIOError):
            Hold.on(tmp_path, ["a"])
        assert Hold.on(tmp_path, ["b"]) is not None
    assert Hold.on(tmp_path, ["a"]) is not None


def test_a_fork_holds_until_it_ends(tmp_path: Path) -> None:
    admit_readers(tmp_path)
    hold = Hold.on(tmp_path, ["a"])
    child = os.fork()
    if not child:
        signal.pause()
    del hold
    assert not is_free(tmp_path, "a")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert is_free(tmp_path, "a")


def test_a_reader_goes_on_without_locks(tmp_path: Path) -> None:
    assert Hold.on(tmp_path, ["a"]) is None
    assert list(tmp_path.iterdir()) == []
    assert Hold.on(RemotePath("memory://x"), ["a"]) is None
    with excluded(RemotePath("memory://x"), "a") as free:
        assert free


def test_a_reader_needs_no_permission_to_write(tmp_path: Path) -> None:
    admit_readers(tmp_path)
    (tmp_path / ".readers").chmod(0o444)
    tmp_path.chmod(0o555)
    hold = Hold.on(tmp_path, ["a"])
    assert hold is not None
    tmp_path.chmod(0o755)
    (tmp_path / ".readers").chmod(0o644)
    assert not is_free(tmp_path, "a")
