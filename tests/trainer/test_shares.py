"""Nodes with micro-batches of their own: unequal shares of the same batches.

Guarantee: Unequal micro-batches learn what equal ones learn.
"""

from pathlib import Path

import pytest

from tests.nightly import a_few
from tests.trainer.runs import Trial, events, losses

pytestmark = pytest.mark.slow

STEPS = 6


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    flags = ("--batch-size", 14, "--max-steps", STEPS, "--log-every", 1, "--eval-every", 3)
    folder = tmp_path_factory.mktemp("shares")
    return Trial.on_corpus(folder, "--lr", "1e-2", *flags, hidden_dropout=0.1)


@pytest.fixture(scope="module")
def alone(trial: Trial) -> Path:
    run = trial.folder / "alone"
    trial.run("--micro-batch", 7, "--save", run)
    return run


@pytest.mark.parametrize("stage", a_few([3, 0, 2], of_each=3))
def test_the_loss_is_that_of_equal_micro_batches(trial: Trial, alone: Path, stage: int) -> None:
    run = trial.folder / f"unequal-{stage}"
    flags = ("--micro-batch", "4,2,1", *trial.zero(stage), "--save", run)
    output = trial.run(*flags, world=3, nodes=True).output()
    assert "batch 14 = micro-batches 4+2+1 x accumulation 2; validation: " in output
    found = trial.folder / "node-0" / run if not run.exists() else run
    assert losses(found) == pytest.approx(losses(alone), abs=2e-5)
    assert losses(found, "validation") == pytest.approx(losses(alone, "validation"), abs=2e-5)
    samples = [event["samples"] for event in events(found, "train")]
    assert samples == [14 * step for step in range(1, STEPS + 1)]


def test_a_run_goes_on_with_other_shares(trial: Trial, alone: Path) -> None:
    run = trial.folder / "changed"
    begun = ("--max-steps", 3, "--decay-steps", STEPS, "--save", run, *trial.zero(0))
    trial.run(*begun, "--micro-batch", "5,2", world=2, nodes=True)
    trial.run("--decay-steps", STEPS, "--save", run, *trial.zero(0), "--micro-batch", 7)
    assert losses(run) == pytest.approx(losses(alone), abs=2e-5)
