"""No file in a run's folder is ever executed, whoever wrote it.

Guarantee: Resuming runs nothing that is in a run's folder, whoever wrote it.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from shards.__main__ import main as shards_main
from shards.console import run_module
from shards.errors import UserError
from tests.nightly import a_few
from tests.trainer.poison import POISONS, mend_lists, poison
from tests.trainer.runs import Running, Trial
from trainer.export.command import Export
from trainer.export.export import export

pytestmark = pytest.mark.slow

WORLDS = {0: 1, 1: 2, 3: 2}
"""The number of ranks of the run whose files are poisoned, by ZeRO stage."""
FLAGS = (
    *("--batch-size", "8", "--max-steps", "2", "--lr", "0.01", "--micro-batch", "4"),
    *("--save-every", "1", "--eval-every", "0", "--log-every", "1", "--keep", "1"),
)
COMMANDS = ("resume", "other world", "evaluate", "init")


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    trial = Trial.on_corpus(tmp_path_factory.mktemp("runs"))
    for stage, world in WORLDS.items():
        flags = (*FLAGS, *trial.zero(stage), "--max-steps", 1)
        trial.run(*flags, "--save", trial.folder / f"run-{stage}", world=world)
    return trial


def start_command(trial: Trial, command: str, run: Path, stage: int, **more: Any) -> Running:
    """Start a command that opens a run's folder."""
    world = WORLDS[stage]
    flags: list[object] = [*FLAGS, *trial.zero(stage)]
    if command == "init":
        return trial.start(*flags, "--init-from", run / "step-1", **more)
    if command == "evaluate":
        return Trial(trial.folder, (), trial.started, command).start(run, world=world, **more)
    world = 3 - world if command == "other world" else world
    return trial.start(*flags, "--save", run, world=world, **more)


def copy(trial: Trial, stage: int, name: str) -> tuple[Path, Path]:
    """Return a copy of a stage's run, and the path of the folder that the payload would make."""
    run = trial.folder / f"copy-{name}"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(trial.folder / f"run-{stage}", run)
    return run, trial.folder / f"trace-{name}"


def tensors(stage: int) -> list[str]:
    """Return the names of the files with tensors in the run of a stage."""
    ranks = range(WORLDS[stage])
    models = ["mp_rank_00_model_states.pt"]
    if stage == 3:
        models = [f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt" for rank in ranks]
    states = [f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in ranks]
    return [*models, *(states if stage else ())]


CASES = [
    (0, "init", tensors(0)[0]),
    *((1, "resume", name) for name in tensors(1)),
    *((3, command, tensors(3)[0]) for command in COMMANDS if command != "evaluate"),
    (3, "evaluate", tensors(3)[-1]),
]


@pytest.mark.parametrize(("stage", "command", "name"), CASES)
def test_a_poisoned_file_of_tensors_is_refused(
    trial: Trial, stage: int, command: str, name: str
) -> None:
    run, trace = copy(trial, stage, "tensors")
    way = list(POISONS)[(len(command) + len(name)) % len(POISONS)]
    poison(run / "step-1" / name, trace, way)
    running = start_command(trial, command, run, stage).wait()
    assert set(running.codes()) == {2}, running.output()
    assert not trace.exists()
    assert_one_paragraph(running.output())
    assert str(run / "step-1" / name) in running.output()


def assert_one_paragraph(output: str) -> None:
    assert "Traceback" not in output
    lines = [line for line in output.splitlines() if re.match(r"trainer\.\w+: ", line)]
    assert len(lines) == 1, output


@pytest.mark.parametrize("stage", [0, 1, 3])
def test_an_export_refuses_too(trial: Trial, stage: int) -> None:
    for way, name in zip(list(POISONS) * 2, tensors(stage), strict=False):
        run, trace = copy(trial, stage, "exported")
        poison(run / "step-1" / name, trace, way)
        output = trial.folder / "exported"
        with pytest.raises(
            UserError, match=r"step-1.* was not loaded|cannot join .*step-1|step-1.* cannot be read"
        ):
            export(Export(path=run, to="safetensors", output=output))
        assert not trace.exists()
        assert not output.exists()


def test_other_files_are_no_pickles(trial: Trial) -> None:
    stage = 1
    whole = trial.folder / f"run-{stage}"
    names = sorted(str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file())
    others = [name for name in names if not name.endswith(".pt")]
    assert {"latest", "log.jsonl", "run.json", "step-1/whole-00000.json"} < set(others)
    for name in others:
        run, trace = copy(trial, stage, "others")
        poison(run / name, trace, "plain")
        running = start_command(trial, "resume", run, stage).wait()
        assert not trace.exists(), name
        assert set(running.codes()) <= {0, 2}, running.output()
        assert "Traceback" not in running.output(), name
        if 2 in running.codes():
            assert_one_paragraph(running.output())
            assert name in running.output()
        run_module("trainer.plot", [str(run)])
        shards_main(["trace", str(run / "run.json"), "--step", "0"])
        assert not trace.exists(), name


@pytest.mark.parametrize("stage", a_few([3, 1], of_each=2))
def test_names_that_lead_out_of_the_folder_make_no_files(trial: Trial, stage: int) -> None:
    run, _ = copy(trial, stage, "names")
    path = run / "step-1" / tensors(stage)[0]
    content = torch.load(path, weights_only=False)
    outside = trial.folder / "outside"
    content["module"][str(outside / "w")] = torch.zeros(3)
    torch.save(content, path)
    mend_lists(path)
    running = start_command(trial, "other world", run, stage).wait()
    assert set(running.codes()) == {2}, running.output()
    assert "has an entry named" in running.output()
    assert not outside.exists()
