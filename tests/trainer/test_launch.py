"""Runs the scripts of trainer/launch with a launcher that only prints how it was called."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.forks import ENVIRONMENT, rank_environment
from tests.ports import free_port

LAUNCH = Path(__file__).parents[2] / "trainer" / "launch"
PRINTS = '#!/bin/sh\necho "$TORCH_ELASTIC_SHUTDOWN_TIMEOUT s:" "$@"\n'
SIGNALS = '#!/bin/sh\necho "$PET_SIGNALS_TO_HANDLE"\n'
FAKES = {
    "torchrun": PRINTS,
    "deepspeed": PRINTS,
    "scontrol": "#!/bin/sh\necho node-a\n",
    "srun": '#!/bin/sh\nexec "$@"\n',
    "nvidia-smi": "#!/bin/sh\nexit 9\n",
}
SLURM = {"SLURM_JOB_NODELIST": "node-a", "SLURM_JOB_NUM_NODES": "1", "SLURM_NODEID": "0"}


def called(
    script: str, folder: Path, more: Mapping[str, str], *, torchrun: str = PRINTS, before: str = ""
) -> "subprocess.CompletedProcess[str]":
    for name, text in {**FAKES, "torchrun": torchrun}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    environment = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", **more}
    return subprocess.run(
        [*before.split(), "bash", str(LAUNCH / script), "--model", "a b"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def test_without_a_gpu_it_says_how_to_start_on_the_cpu(tmp_path: Path) -> None:
    done = called("torchrun.sh", tmp_path, {})
    assert done.returncode == 2
    assert done.stderr.startswith("torchrun.sh: there is no GPU here. Say how many ranks to start")


NODES = "--nnodes 2 --node-rank 1 --nproc-per-node gpu --master-addr a --master-port 29500"
ALONE = "--nnodes 1 --node-rank 0 --nproc-per-node gpu --master-addr node-a --master-port 29500"


@pytest.mark.parametrize(
    ("script", "environment", "printed"),
    [
        # The time to save is 110 s by default, or as requested.
        ("torchrun.sh", {"GPUS": "2"}, "110 s: --standalone --nproc-per-node 2 -m"),
        (
            "torchrun.sh",
            {"GPUS": "2", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "300"},
            "300 s: --standalone --nproc-per-node 2 -m",
        ),
        (
            "torchrun-nodes.sh",
            {"NODES": "2", "NODE": "1", "MASTER": "a"},
            f"110 s: {NODES} -m",
        ),
        ("slurm.sbatch", SLURM, f"110 s: {ALONE} -m"),
        ("deepspeed.sh", {"GPUS": "2"}, " s: --num_gpus 2 --module"),
        (
            "deepspeed-nodes.sh",
            {"HOSTFILE": "hosts", "MASTER": "a"},
            " s: --hostfile hosts --master_addr a --module",
        ),
    ],
)
def test_what_a_launcher_is_told(
    tmp_path: Path, script: str, environment: Mapping[str, str], printed: str
) -> None:
    shown = called(script, tmp_path, environment).stdout
    assert shown == f"{printed} trainer.train --model a b\n"


@pytest.mark.parametrize(
    ("script", "environment"),
    [
        ("torchrun.sh", {"GPUS": "2"}),
        ("torchrun-nodes.sh", {"NODES": "2", "NODE": "1", "MASTER": "a"}),
    ],
)
def test_torchrun_passes_on_the_signals_that_are_not_ignored(
    tmp_path: Path, script: str, environment: Mapping[str, str]
) -> None:
    for before, first in (("", "SIGHUP,"), ("nohup", "")):
        shown = called(script, tmp_path, environment, torchrun=SIGNALS, before=before).stdout
        assert shown == f"{first}SIGTERM,SIGINT,SIGQUIT,SIGUSR1\n"


@pytest.mark.slow
def test_a_rank_reports_that_it_waits_for_the_others() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "from trainer.distributed import Ranks; Ranks.join()"],
        stderr=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, **rank_environment(0, 2, port=free_port(), local=0)},
    ) as waiting:
        assert waiting.stderr is not None
        shown = next((line for line in waiting.stderr if "waiting" in line), "")
        waiting.kill()
    assert re.match(r"rank 0 of 2 is waiting for the other ranks at 127\.0\.0\.1:\d+$", shown)
