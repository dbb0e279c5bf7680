import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.engines.processes import started, wait_until

ROOT = Path(__file__).parents[2]
# A tree with branches that leave group and session, as daemons do.
TREE = ["sh", "-c", "sleep 600 & setsid sh -c 'sleep 600 & sleep 600' & wait"]
HOLDER = """
import sys, time
from pathlib import Path
from tests.engines.processes import started
with started({tree!r}, log=Path({log!r})):
    time.sleep(600)
"""


def sleepers(process: psutil.Process) -> list[psutil.Process]:
    return [child for child in process.children(recursive=True) if child.name() == "sleep"]


def test_killing_the_process_that_started_it_leaves_nothing_behind(tmp_path: Path) -> None:
    code = HOLDER.format(tree=TREE, log=str(tmp_path / "log"))
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as holder:
        parent = psutil.Process(holder.pid)
        while len(sleepers(parent)) < 3:
            assert holder.poll() is None
        descendants = parent.children(recursive=True)
        holder.send_signal(signal.SIGKILL)
    assert len(descendants) >= 5
    assert psutil.wait_procs(descendants, timeout=20)[1] == []


def test_a_block_ends_what_it_started(tmp_path: Path) -> None:
    with started(TREE, log=tmp_path / "log") as process:
        guard = psutil.Process(process.pid)
        wait_until(lambda: len(sleepers(guard)) == 3, process, log=tmp_path / "log")
        descendants = guard.children(recursive=True)
    assert psutil.wait_procs(descendants, timeout=20)[1] == []


def test_a_command_that_ends_takes_its_children_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with started(["sh", "-c", "sleep 600 & echo $!; exit 3"], log=log) as process:
        assert process.wait(timeout=20) == 3
        assert not psutil.pid_exists(int(log.read_text()))


def test_a_process_that_never_gets_ready_is_reported_with_its_log(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    with (
        started(["sh", "-c", "echo no port; exit 1"], log=log) as process,
        pytest.raises(RuntimeError, match=r"engine ended or took longer .*: no port"),
    ):
        wait_until(lambda: False, process, log=log, seconds=20)
