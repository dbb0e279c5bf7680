"""Three machines with 2 + 1 + 1 ranks, each with its part of the shards, over TCP between them.

First torchrun starts the run, then, after a power cut of one machine, DeepSpeed's launcher does.
"""

import time
from pathlib import Path

import pytest

from shards.__main__ import main
from shards.manifest import TRAIN
from shards.reader import Dataset
from tests.trainer.machines import Machines
from tests.trainer.runs import Trial, events, losses

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

RANKS = (2, 1, 1)
STEPS = 12
FLAGS = (
    *("--batch-size", "8", "--max-steps", str(STEPS), "--lr", "0.01", "--dropout", "0"),
    *("--scatters", "4", "--save-every", "3", "--eval-every", "6", "--log-every", "1"),
)


def shards_in(folder: Path) -> set[str]:
    """The shards to train on that a folder has whole."""
    entries = Dataset.open(folder).manifest.shards(split=TRAIN)
    return {entry.path for entry in entries if (folder / f"{entry.path}.bin").exists()}


def placed(machines: Machines, data: Path) -> list[set[str]]:
    """Bring each machine its part of a dataset, and return the shards that each then has."""
    for number, machine in enumerate(machines.all):
        words = ["place", str(data), "--scatters", "4", "--to", str(machine.folder / "disk")]
        words += ["--nodes", ",".join(map(str, RANKS)), "--node", str(number)]
        assert main(words) == 0
    return [shards_in(machine.folder / "disk") for machine in machines.all]


def outputs(machines: Machines) -> str:
    return "\n".join(machine.output for machine in machines.all)


def test_one_is_cut_off_and_comes_back(tmp_path: Path) -> None:
    alone = Trial.on_corpus(tmp_path, *FLAGS, "--deepspeed", tmp_path / "zero1.json")
    with Machines(tmp_path / "machines", RANKS) as machines:
        first, second, third = machines.all
        parts = placed(machines, tmp_path / "data")
        assert [len(part) for part in parts] == [4, 2, 2]  # of two sources of four shards
        assert len(set.union(*parts)) == 8

        run = tmp_path / "run"
        words = [*alone.flags, "--micro-batch", "2", "--data", "disk", "--save", str(run)]
        for machine in machines.all:
            machines.start(machine, *words)
        while not any(event["step"] >= 4 for event in events(run)):
            assert all(machine.is_up() for machine in machines.all), outputs(machines)
            time.sleep(0.02)
        machines.cut_off(third)
        assert first.wait() != 0, outputs(machines)  # the others notice
        assert second.wait() != 0, outputs(machines)
        assert not (run / f"step-{STEPS}").exists()
        assert min(machines.received(machine) for machine in machines.all) > 100_000

        machines.start_all(*words)
        assert first.wait() == 0, outputs(machines)
        assert "resumes after step" in first.output

    alone.run("--micro-batch", 2, "--save", tmp_path / "four", world=4)
    assert events(run) == events(tmp_path / "four")
    assert len(losses(run)) == STEPS
    alone.run("--micro-batch", 8, "--save", tmp_path / "one")
    assert losses(run) == pytest.approx(losses(tmp_path / "one"), abs=2e-5)
