"""Runs that end by epochs, and what is done at the end of each."""

import json
from pathlib import Path

import pytest

from shards.order.unseen import end_of_epochs
from tests.trainer.alone import configured
from tests.trainer.corpus import SHAPE, build
from tests.trainer.runs import Trial, events


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("epochs")
    build(folder / "data")
    (folder / "model.json").write_text(json.dumps(SHAPE))
    return folder / "data"


@pytest.mark.nightly
def test_a_run_of_two_epochs_saves_and_validates_after_each(data: Path) -> None:
    """Also when it is killed in between; at the end it tells its speed, once."""
    model = str(data.parent / "model.json")
    flags = ("--data", str(data), "--model", model, "--batch-size", "6", "--log-every", "1")
    every = ("--save-every", "epoch", "--eval-every", "epoch", "--epochs", "2")
    trial = Trial(data.parent, flags)
    run = data.parent / "run"
    output = trial.run(*every, "--save", run).output()
    of_data = configured(["--data", str(data), "--model", model, "--batch-size", "6"]).run
    epoch = end_of_epochs(of_data.sampler(), start=0)
    half, end = -(-epoch // 6), -(-2 * epoch // 6)
    half -= epoch % 6 > 0 and epoch < 6 * (half - 1)
    assert f"ends after step {end:,}, 2 epochs of {epoch:,} windows" in output
    assert {path.name for path in run.glob("step-*")} == {f"step-{half}", f"step-{end}"}
    assert [event["step"] for event in events(run, "validation")] == [half, end]
    assert "samples/s, " in output
    assert f"the mean of steps {end // 2 + 1:,} to {end:,}, without" in output
    assert [event["step"] for event in events(run, "speed")] == [end]

    cut = data.parent / "cut"
    trial.run(*every[:4], "--max-steps", half + 1, "--decay-steps", end, "--save", cut)
    trial.run(*every, "--save", cut)
    assert events(cut, "train") == events(run, "train")
    again = trial.run(*every, "--save", run).output()
    assert "samples/s" not in again
