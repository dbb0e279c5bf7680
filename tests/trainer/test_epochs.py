"""Runs that end by epochs, and what is done at the end of each."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from shards.order.unseen import end_of_epochs
from tests.trainer.alone import configured
from tests.trainer.corpus import SHAPE, build
from tests.trainer.runs import Trial, events
from trainer.config import Config
from trainer.settings import EPOCH
from trainer.start import _ended, _epoch


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("epochs")
    build(folder / "data")
    (folder / "model.json").write_text(json.dumps(SHAPE))
    return folder / "data"


def config(data: Path, *flags: str) -> Config:
    model = str(data.parent / "model.json")
    return configured(["--data", str(data), "--model", model, "--batch-size", "6", *flags])


def test_one_epoch_is_the_default(data: Path) -> None:
    found = config(data)
    assert found.run.steps is None
    assert found.settings.epochs == 1


def test_an_epoch_has_as_many_samples_as_there_are_windows(data: Path) -> None:
    run = config(data).run
    epoch = _epoch(run)
    assert epoch == end_of_epochs(run.sampler(), start=0)
    ended = _ended(run, 2.5, epoch=epoch)
    assert ended.steps is not None
    assert ended.position_of(ended.steps - 1) < 2.5 * epoch <= ended.position_of(ended.steps)
    assert _ended(ended, 1, epoch=epoch) == ended, "the number of steps is known"


def test_data_that_are_not_drawn_do_not_count(data: Path) -> None:
    run = config(data, "--data", f"{data}:web=1", f"{data}:notes=0").run
    only = config(data, "--data", f"{data}:web").run
    assert _epoch(run) == _epoch(only) < _epoch(config(data).run)


def test_a_recipe_gives_way_to_epochs(data: Path, configure: Callable[..., Config]) -> None:
    recipe = data.parent / "recipe.args"
    recipe.write_text("--max-steps 300 --lr 1e-3")
    found = config(data, "--recipe", str(recipe), "--epochs", "2", "--save-every", "epoch")
    assert found.run.steps is None
    assert (found.settings.epochs, found.settings.save_every) == (2, EPOCH)
    assert configure().settings.epochs is None


@pytest.mark.nightly
def test_a_run_of_two_epochs_saves_and_validates_after_each(data: Path) -> None:
    """Also when it is killed in between; at the end it tells its speed, once."""
    model = str(data.parent / "model.json")
    flags = ("--data", str(data), "--model", model, "--batch-size", "6", "--log-every", "1")
    every = ("--save-every", "epoch", "--eval-every", "epoch", "--epochs", "2")
    trial = Trial(data.parent, flags)
    run = data.parent / "run"
    output = trial.run(*every, "--save", run).output()
    epoch = _epoch(config(data).run)
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
