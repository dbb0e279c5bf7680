"""Real runs that follow a dataset while it grows, killed and resumed.

Guarantee: A run with `--follow` that is killed has the losses of one that is not, on one rank or
two.
"""

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from shards.manifest import read_manifest, write_manifest
from shards.sampling.plan import SamplingPlan
from tests.nightly import a_few
from tests.shards.datasets import remove
from tests.trainer.corpus import SIZE, build, grow
from tests.trainer.runs import Trial, events, kill_minus_nine, losses
from trainer import follow
from trainer.data import RunData
from trainer.trainer import Trainer

pytestmark = pytest.mark.slow

STEPS = 14
FLAGS = (
    *("--batch-size", "8", "--max-steps", str(STEPS), "--lr", "0.01", "--micro-batch", "4"),
    *("--save-every", "3", "--eval-every", "4", "--log-every", "1", "--keep", "9"),
)
COMES = {24: 2, 72: 3}
"""The number of the manifest that a run finds when it looks at a position."""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    folder = tmp_path_factory.mktemp("runs")
    trial = Trial.on_corpus(folder, "--deepspeed", folder / "zero1.json", *FLAGS)
    yield trial
    for running in trial.started:
        running.kill()  # otherwise a run that waits for text would wait forever


def data_in(trial: Trial, name: str, *, numbers: int = 1) -> Path:
    build(trial.folder / name)
    for number in range(2, numbers + 1):
        grow(trial.folder / name, number=number)
    return trial.folder / name


def before_each_look(act: Callable[[int], None]) -> None:
    """Make runs call `act` just before they look for new data at a position."""
    look: Callable[..., None] = follow.DatasetWatcher.poll

    def look_at(self: follow.DatasetWatcher, data: RunData, position: int, **more: Any) -> None:
        act(position)
        self.ranks.barrier()
        look(self, data, position, **more)

    setattr(follow.DatasetWatcher, "poll", look_at)  # noqa: B010 - mypy does not let methods be assigned


def generations_come(data: Path, comes: dict[int, int], kill_after: int | None = None) -> None:
    """Make generations arrive at positions, and kill the run after a step, if given."""
    take: Callable[..., None] = Trainer._take_step

    def come(position: int) -> None:
        if os.environ["RANK"] == "0" and position in comes:
            grow(data, number=comes[position])

    def take_step(self: Trainer) -> None:
        take(self)
        if self.step == kill_after:
            kill_minus_nine()

    before_each_look(come)
    setattr(Trainer, "_take_step", take_step)  # noqa: B010 - as above


def switches(run: Path) -> dict[str, int]:
    """Return the position from which a run reads each manifest, by number."""
    first: dict[str, int] = {}
    for mix in SamplingPlan.load(run / "run.json").mixes:
        first.setdefault(mix.data[0].rpartition("@")[2], mix.start)
    return first


@pytest.fixture(scope="module")
def undisturbed(trial: Trial) -> Callable[[int], Path]:
    """A function that returns the folder of a run, made once, through three generations."""

    def run(world: int) -> Path:
        folder, data = trial.folder / f"whole-{world}", trial.folder / f"whole-data-{world}"
        if not folder.exists():
            prepare = partial(generations_come, data_in(trial, data.name), COMES)
            flags = ("--data", data, "--follow", "--save", folder)
            trial.run(*flags, world=world, prepare=prepare)
        return folder

    return run


@pytest.mark.parametrize("world", a_few([1, 2], of_each=2))
def test_killed_twice_is_as_if_it_had_not_been(
    trial: Trial, undisturbed: Callable[[int], Path], world: int
) -> None:
    """One kill is right after a switch, before the next checkpoint; one is between two switches."""
    whole = undisturbed(world)
    assert switches(whole) == {"1": 0, "2": 24, "3": 72}
    run, data = trial.folder / f"killed-{world}", data_in(trial, f"killed-data-{world}")
    flags = ("--data", data, "--follow", "--save", run)

    def kill(after: int, begins: str) -> None:
        prepare = partial(generations_come, data, COMES, after)
        killed = trial.start(*flags, world=world, prepare=prepare).wait()
        assert set(killed.codes()) == {-signal.SIGKILL}
        assert begins in killed.output()

    kill(4, "the run starts from the beginning")
    kill(7, "the run resumes after step 3")
    # The run looked at 48 and found nothing; a manifest that has come meanwhile does not change
    # that.
    grow(data, number=3)
    again = trial.run(*flags, world=world)
    assert "the run resumes after step 6" in again.output()
    assert "from step 10 on" in again.output()
    assert switches(run) == switches(whole)
    assert events(run) == events(whole)
    assert len(losses(run)) == STEPS


def test_an_earlier_checkpoint_repeats_later_switches(
    trial: Trial, undisturbed: Callable[[int], Path]
) -> None:
    """When the steps are repeated, the removals of a later switch do not apply yet."""
    whole, data = undisturbed(1), trial.folder / "whole-data-1"
    run = Path(shutil.copytree(whole, trial.folder / "back"))
    for step in (9, 12, 14):
        shutil.rmtree(run / f"step-{step}")
    later = Path(shutil.copytree(data, trial.folder / "later-data"))
    rows = [("web", "train", i, row) for i in range(4) for row in range(8)]
    remove(later, rows, number=4)
    again = trial.run("--data", later, "--follow", "--save", run)
    assert "the run resumes after step 6" in again.output()
    assert events(run) == events(whole)
    # In a new folder, without the decisions, the run starts from a checkpoint of the same number of
    # ranks.
    fork = trial.folder / "fork"
    trial.run("--data", later, "--follow", "--save", fork, "--resume", whole / "step-6")
    assert losses(fork) == losses(whole)[6:]


def arrives_on_nodes() -> None:
    """Make a generation arrive on node 0 at 24, and on node 1 partly at 24, fully at 48."""
    data = Path("data")
    shard, aside = data / "g0002-00" / "web" / "00002.bin", Path("aside.bin")

    def arrive(position: int) -> None:
        if position == 24:
            grow(data)
            if os.environ["RANK"] == "1":
                shard.rename(aside)
        elif position == 48 and aside.is_file():
            aside.rename(shard)

    before_each_look(arrive)


def test_nodes_switch_to_what_all_of_them_have(trial: Trial) -> None:
    nodes = Trial(trial.folder / "nodes", trial.flags, trial.started)
    for rank in range(2):
        build(nodes.folder / f"node-{rank}" / "data")
    run = nodes.folder / "run"
    flags = ("--data", "data", "--follow", "--save", run, "--max-steps", 8)
    nodes.run(*flags, world=2, nodes=True, prepare=arrives_on_nodes)
    assert switches(run) == {"1": 0, "2": 48}


def overwritten(data: Path) -> None:
    write_manifest(data, replace(read_manifest(data), lineage="1" * 64, number=2))


def too_large(data: Path) -> None:
    """Make a generation arrive whose vocabulary is too large for the model."""
    grow(data)
    manifest = read_manifest(data)
    tokenizer = replace(manifest.tokenizer, vocabulary_size=2 * SIZE)
    write_manifest(data, replace(manifest, tokenizer=tokenizer))


def change_at(change: Callable[[Path], None], data: Path, position: int) -> None:
    before_each_look(lambda at: change(data) if at == position else None)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (overwritten, r"was overwritten or compacted since it was opened as"),
        (too_large, r"no newer text is taken for now: .*? whose vocabulary has 256 ids"),
    ],
)
def test_data_that_cannot_be_followed_are_left(
    trial: Trial, change: Callable[[Path], None], told: str
) -> None:
    """The run continues with the files that it has, and reports this once."""
    run, data = trial.folder / change.__name__, data_in(trial, f"{change.__name__}-data")
    flags = ("--data", data, "--follow", "--save", run)
    prepare = partial(change_at, change, data, 24)
    output = trial.run(*flags, "--max-steps", 7, prepare=prepare).output()
    assert len(re.findall(told, " ".join(output.split()))) == 1
    assert len(losses(run)) == 7
    assert switches(run) == {"1": 0}
    manifest = read_manifest(data)
    lost = replace(manifest.generations[0], number=2, fingerprint="ff")
    write_manifest(data, replace(manifest, lineage="1" * 64, generations=(lost,)))
    refused = trial.run(*flags, "--max-steps", 9, code=2).output()
    assert f"because {data}@1, which it was trained on, is gone: there is no manifest" in refused
    assert "Traceback" not in refused
