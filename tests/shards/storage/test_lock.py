import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from shards.errors import UserError
from shards.storage.lock import locked

HOLD = """
import pathlib, sys
from shards.storage.lock import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_folder_is_held_alone_or_shared(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(UserError), locked(tmp_path, shared=True):
        pytest.fail("it is held alone")
    with (
        locked(tmp_path, shared=True),
        locked(tmp_path, shared=True),
        pytest.raises(UserError, match="is being written by"),
        locked(tmp_path),
    ):
        pytest.fail("it is shared")
    with locked(tmp_path):
        pass


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path / "d"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(
                UserError,
                match=rf"d is being written by process {holder.pid} on host \S+; wait for it "
                "or choose another --output",
            ),
            locked(tmp_path / "d"),
        ):
            pytest.fail("the block must not run")
        holder.kill()
        holder.wait()
    with locked(tmp_path / "d"):
        assert str(os.getpid()) in (tmp_path / "d" / ".lock").read_text()


def test_who_waits_gets_the_folder_when_it_is_free(tmp_path: Path) -> None:
    taken: list[str] = []
    with locked(tmp_path):
        thread = threading.Thread(target=take, args=(tmp_path, taken))
        thread.start()
        time.sleep(0.2)
        taken.append("first")
    thread.join()
    assert taken == ["first", "second"]


def take(folder: Path, taken: list[str]) -> None:
    with locked(folder, wait=True):
        taken.append("second")


def test_a_lock_ends_with_its_block_and_is_not_inherited(tmp_path: Path) -> None:
    with locked(tmp_path), subprocess.Popen(["sleep", "5"], close_fds=False) as child:
        with pytest.raises(UserError), locked(tmp_path):
            pytest.fail("the same process cannot hold it twice")
        descriptors = {str(f.readlink()) for f in Path(f"/proc/{child.pid}/fd").iterdir()}
        child.kill()
    assert descriptors
    assert str(tmp_path / ".lock") not in descriptors
    with locked(tmp_path):
        pass
