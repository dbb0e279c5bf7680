"""The launchers' processes, asked to stop as Slurm and Kubernetes do it."""

import json
import os
import signal
import subprocess
import sys
import time
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
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_asked_to_stop_it_saves_and_ends_with_the_signals_code(
    tmp_path: Path, launcher: str
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
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 143, output
    assert "Traceback" not in output
    assert output.count("stopping: this step is finished") == 1
    (saved,) = run.glob("step-*")
    assert (saved / "whole-00000.json").is_file()


def test_another_launcher_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mpirun"]) == 2
    assert main([]) == 2
    assert "torchrun|deepspeed" in capsys.readouterr().err
