import subprocess
import sys

from pipelines import compiled

WAITING = """
import fcntl, sys
with open(sys.argv[1], "wb") as lock:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("waits")
"""


def other_process() -> str:
    """Return what another process says that wants to compile."""
    folder = compiled._folder()
    assert folder is not None
    command = [sys.executable, "-c", WAITING, str(folder / "lock")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_one_process_compiles_and_may_ask_twice() -> None:
    with compiled.compiling():
        with compiled.compiling():
            pass
        assert other_process() == "waits"
    assert other_process() == ""
