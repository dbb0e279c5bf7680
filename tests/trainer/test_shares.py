"""Nodes with micro-batches of their own: unequal shares of the same batches."""

import json
from pathlib import Path

import pytest

from tests.nightly import a_few
from tests.trainer.corpus import SHAPE, build
from tests.trainer.runs import Trial, events, losses

pytestmark = pytest.mark.slow

STEPS = 6


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    folder = tmp_path_factory.mktemp("shares")
    build(folder / "data")
    (folder / "model.json").write_text(json.dumps({**SHAPE, "hidden_dropout": 0.1}))
    for stage in (0, 2, 3):
        content = {"zero_optimization": {"stage": stage}}
        (folder / f"zero{stage}.json").write_text(json.dumps(content))
    flags = ("--data", folder / "data", "--model", folder / "model.json", "--lr", "1e-2")
    more = ("--batch-size", 14, "--max-steps", STEPS, "--log-every", 1, "--eval-every", 3)
    return Trial(folder, tuple(map(str, (*flags, *more))))


@pytest.fixture(scope="module")
def alone(trial: Trial) -> Path:
    run = trial.folder / "alone"
    trial.run("--micro-batch", 7, "--save", run)
    return run


@pytest.mark.parametrize("stage", a_few([3, 0, 2], of_each=3))
def test_the_loss_is_that_of_equal_micro_batches(trial: Trial, alone: Path, stage: int) -> None:
    run = trial.folder / f"unequal-{stage}"
    json_file = trial.folder / f"zero{stage}.json"
    flags = ("--micro-batch", "4,2,1", "--deepspeed", json_file, "--save", run)
    output = trial.run(*flags, world=3, nodes=True).output()
    assert "batch 14 = micro-batches 4+2+1 x accumulation 2; validation: " in output
    found = trial.folder / "node-0" / run if not run.exists() else run
    assert losses(found) == pytest.approx(losses(alone), abs=2e-5)
    assert losses(found, "validation") == pytest.approx(losses(alone, "validation"), abs=2e-5)
    samples = [event["samples"] for event in events(found, "train")]
    assert samples == [14 * step for step in range(1, STEPS + 1)]


def test_a_run_goes_on_with_other_shares(trial: Trial, alone: Path) -> None:
    run = trial.folder / "changed"
    json_file = ("--deepspeed", trial.folder / "zero0.json")
    begun = ("--max-steps", 3, "--decay-steps", STEPS, "--save", run, *json_file)
    trial.run(*begun, "--micro-batch", "5,2", world=2, nodes=True)
    trial.run("--decay-steps", STEPS, "--save", run, *json_file, "--micro-batch", 7)
    assert losses(run) == pytest.approx(losses(alone), abs=2e-5)
