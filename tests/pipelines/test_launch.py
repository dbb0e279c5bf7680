"""Runs pipelines/launch/slurm.sbatch with stand-ins for Slurm that run each job at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shards.manifest import read_manifest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "pipelines" / "launch" / "slurm.sbatch"
SBATCH = """#!/usr/bin/env bash
array= dependency=
while [[ $1 == -* ]]; do
    [[ $1 == --array=* ]] && array=${1#--array=}
    [[ $1 == --dependency=* ]] && dependency=${1#--dependency=}
    shift
done
echo "array=$array dependency=$dependency" >>"$JOBS"
export SLURM_JOB_ID=1 SLURM_CPUS_PER_ITEM=1
if [[ $array ]]; then
    for task in $(seq ${array%-*} ${array#*-}); do
        SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=${array#*-} bash "$@" >&2 || exit
    done
    echo "41;cluster"
else
    bash "$@" >&2 || exit
    echo 42
fi
"""


@pytest.mark.slow
def test_parts_are_mapped_by_an_array_and_merged_after_it(tmp_path: Path) -> None:
    for name, text in {"sbatch": SBATCH, "srun": '#!/bin/sh\nexec "$@"\n'}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHON": sys.executable,
        "JOBS": str(tmp_path / "jobs"),
        "PARTS": "2",
    }
    environment.pop("SLURM_JOB_ID", None)
    command = ["bash", str(SCRIPT), "wudao", "--output", str(tmp_path / "out"), "--split-bytes"]
    done = subprocess.run(
        [*command, "60k"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "submitted: 2 parts as 41, the merge as 42\n", done.stderr
    assert (tmp_path / "jobs").read_text().splitlines() == [
        "array=1-2 dependency=",
        "array= dependency=afterok:41",
    ]
    assert read_manifest(tmp_path / "out").generations[0].accounting["wudao"]["read"] == 531
