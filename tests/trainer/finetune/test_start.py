from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.alone import ALONE, tuning
from tests.trainer.checkpoints.test_checkpoint import put
from tests.trainer.finetune.lessons import write_lines, write_model
from trainer import start as whole_start
from trainer.checkpoints.disk import Disk
from trainer.finetune import start as module
from trainer.finetune.command import Finetune
from trainer.opening import Opening
from trainer.stop import Stop
from trainer.tasks.catalogue import find_task
from trainer.tasks.items import Item
from trainer.tasks.rows import Question
from trainer.tasks.task import Reader, TaskContext
from trainer.trained import Origin, find_origin


class CheckedError(UserError):
    """Ends a start where files have been checked."""


@pytest.mark.parametrize("is_own", [True, False])
def test_ranks_share_the_reading_of_their_own_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_own: bool
) -> None:
    seen: list[Disk | None] = []

    def check(_: object, *, disk: Disk | None, **__: Any) -> None:
        seen.append(disk)
        raise CheckedError("enough")

    monkeypatch.setattr(whole_start, "check_files", check)
    put(tmp_path / "run", 3)
    save = tmp_path / ("run" if is_own else "other")
    flags = ("--task", "copa", "--data", "items", "--init-from", "model", "--save", str(save))
    asked = tuning([*flags, "--resume", str(tmp_path / "run")])
    with pytest.raises(CheckedError):
        module.start(asked, ALONE, stop=Stop(ALONE))
    # Another folder may be on the disk of one node only, whatever --save is.
    assert [disk is not None for disk in seen] == [is_own]


@pytest.fixture
def starting(tmp_path: Path) -> Callable[..., Finetune]:
    """Return what reads the command line of a run with one item and a model of 128 positions."""
    model = write_model(tmp_path / "model")

    def read(item: dict[str, object], *flags: object) -> Finetune:
        write_lines(tmp_path / "train.jsonl", [item])
        given = ("--data", tmp_path, "--save", tmp_path / "run", *model, *flags)
        return tuning(list(map(str, given)))

    return read


@pytest.mark.parametrize("task_mask", [True, False])
def test_a_task_learns_whether_the_model_knows_task_masks(
    starting: Callable[..., Finetune], monkeypatch: pytest.MonkeyPatch, task_mask: bool
) -> None:
    def origin(path: Path, opening: Opening) -> Origin:
        return replace(find_origin(path, opening), task_mask=task_mask)

    def ask(_: Sequence[Item], asked: TaskContext) -> list[tuple[Item, Question]]:
        raise CheckedError(f"task masks: {asked.task_mask}")

    monkeypatch.setattr(module, "find_origin", origin)
    task = replace(find_task("prompted"), reader=Reader(asked=ask))
    monkeypatch.setattr("trainer.finetune.command.find_task", lambda _: task)
    given = starting({}, "--task", "prompted", "--by-loss")
    with pytest.raises(UserError, match=f"task masks: {task_mask}"):
        module.start(given, ALONE, stop=Stop(ALONE))
