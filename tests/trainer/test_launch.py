"""The scripts of trainer/launch, with a launcher that only prints how it was called."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

LAUNCH = Path(__file__).parents[2] / "trainer" / "launch"
PRINTS = '#!/bin/sh\necho "$TORCH_ELASTIC_SHUTDOWN_TIMEOUT s:" "$@"\n'
FAKES = {
    "torchrun": PRINTS,
    "scontrol": "#!/bin/sh\necho node-a\n",
    "srun": '#!/bin/sh\nexec "$@"\n',
}
SLURM = {"SLURM_JOB_NODELIST": "node-a", "SLURM_JOB_NUM_NODES": "1", "SLURM_NODEID": "0"}


def called(script: str, folder: Path, more: Mapping[str, str]) -> str:
    for name, text in FAKES.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    environment = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", **more}
    done = subprocess.run(
        ["bash", str(LAUNCH / script), "--model", "a b"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return done.stdout


def test_without_a_gpu_it_says_how_to_start_on_the_cpu(tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    done = subprocess.run(
        ["bash", str(LAUNCH / "torchrun.sh"), "--model", "tiny"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
    )
    assert done.returncode == 2
    assert done.stderr.startswith("torchrun.sh: there is no GPU here. Say how many ranks to start")


@pytest.mark.parametrize(
    ("script", "environment", "expected"),
    [
        ("torchrun.sh", {"GPUS": "2"}, "--standalone --nproc-per-node 2"),
        (
            "torchrun-nodes.sh",
            {"NODES": "2", "NODE": "1", "MASTER": "a"},
            "--nnodes 2 --node-rank 1 --nproc-per-node gpu --master-addr a --master-port 29500",
        ),
        (
            "slurm.sbatch",
            SLURM,
            "--nnodes 1 --node-rank 0 --nproc-per-node gpu --master-addr node-a "
            "--master-port 29500",
        ),
    ],
)
def test_torchrun_leaves_time_to_save(
    tmp_path: Path, script: str, environment: Mapping[str, str], expected: str
) -> None:
    printed = called(script, tmp_path, environment)
    assert printed == f"110 s: {expected} -m trainer.train --model a b\n"
    longer = {**environment, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "300"}
    assert called(script, tmp_path, longer).startswith("300 s: ")
