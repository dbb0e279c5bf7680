"""The launchers' processes, asked to stop as Slurm and Kubernetes do it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.corpus import SHAPE, build
from tests.trainer.runs import events
from trainer.launcher import main

ROOT = Path(__file__).parents[2]
LAUNCHERS = {
    "torchrun": ["torchrun", "--standalone", "--nproc-per-node", "2", "-m", "trainer.train"],
    "deepspeed": ["deepspeed", "--num_gpus", "2", "--module", "trainer.train"],
}

RUNNER = """
import os, subprocess, sys
# A zombie, which nobody waits for, as a rank's worker may leave it.
gone = subprocess.Popen([sys.executable, "-c", ""])
os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
rank, launch = sys.argv[1:]
command = [sys.executable, "-c", launch, "deepspeed.launcher.launch", rank]
sys.exit(subprocess.Popen(command).wait())
"""
LAUNCH = """
import subprocess, sys
sys.exit(subprocess.run([sys.executable, "-c", sys.argv[2]]).returncode)
"""
RANK = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit({code}))
print("ready", flush=True)
time.sleep(60)
"""
SAVING = """
import os, signal, sys, time
from collections.abc import Iterator
from pathlib import Path
from trainer.exit_codes import leave_code

def end(*_):
    code = int(sys.argv[1]) if os.environ["RANK"] == "1" else 143
    leave_code(code)
    os._exit(code)

signal.signal(signal.SIGTERM, end)
Path(sys.argv[2], os.environ["RANK"]).touch()
time.sleep(60)
"""
"""A rank that saves when it is asked to stop; the second one's code is given."""
LAUNCHING = """
import sys
from trainer import launcher
popen = launcher.subprocess.Popen
runner = [sys.executable, "-c", *sys.argv[1:]]
launcher.subprocess.Popen = lambda _, **options: popen(runner, **options)
sys.exit(launcher.main(["deepspeed"]))
"""
"""Processes that stand in for those of DeepSpeed's launcher."""


@pytest.fixture(autouse=True)
def signals_as_in_a_terminal() -> Iterator[None]:
    """Under nohup SIGHUP is ignored, and so it would be in what is started here."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def start(launcher: str, *flags: object) -> "subprocess.Popen[str]":
    # The launchers start the Python of the environment that the tests run in.
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "trainer.launcher", *LAUNCHERS[launcher], *map(str, flags)]
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "number", "code"),
    [
        ("torchrun", signal.SIGTERM, 143),
        pytest.param("torchrun", signal.SIGHUP, 129, marks=pytest.mark.nightly),
        pytest.param("deepspeed", signal.SIGTERM, 143, marks=pytest.mark.nightly),
    ],
)
def test_asked_to_stop_it_saves_and_ends_with_the_signals_code(
    tmp_path: Path, launcher: str, number: signal.Signals, code: int
) -> None:
    build(tmp_path / "data")
    (tmp_path / "model.json").write_text(json.dumps(SHAPE))
    run = tmp_path / "run"
    flags = (
        *("--data", tmp_path / "data", "--model", tmp_path / "model.json", "--batch-size", 4),
        *("--max-steps", 100_000, "--log-every", 1, "--eval-every", 0, "--save", run),
    )
    process = start(launcher, *flags)
    while not events(run):
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    process.send_signal(number)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == code, output
    assert "Traceback" not in output
    assert output.count("stopping: this step is finished") == 1
    (saved,) = run.glob("step-*")
    assert (saved / "whole-00000.json").is_file()


def test_another_launcher_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mpirun"]) == 2
    assert main([]) == 2
    assert "torchrun|deepspeed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "code", "expected"),
    [
        (signal.SIGTERM, 143, 143),
        (signal.SIGTERM, 2, 2),
        (signal.SIGTERM, 0, 143),
        (signal.SIGHUP, 143, 129),
    ],
)
def test_ranks_hear_beside_processes_that_have_ended(
    number: signal.Signals, code: int, expected: int
) -> None:
    rank = RANK.format(code=code)
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHING, RUNNER, rank, LAUNCH],
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == expected


@pytest.mark.slow
def test_torchruns_ranks_fail_while_they_save(tmp_path: Path) -> None:
    (tmp_path / "rank.py").write_text(SAVING)
    ready = tmp_path / "ready"
    ready.mkdir()
    flags = ("torchrun", "--standalone", "--nproc-per-node", "2", tmp_path / "rank.py", 2, ready)
    process = subprocess.Popen(
        [sys.executable, "-m", "trainer.launcher", *map(str, flags)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    while len(list(ready.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 2
