from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.alone import ALONE
from tests.trainer.checkpoints.test_checkpoint import put
from tests.trainer.tuning.lessons import write_lines, write_model
from trainer.checkpoints.disk import Disk
from trainer.tasks.question import Question
from trainer.tasks.task import Asked
from trainer.trained import Opening, Origin, find_origin
from trainer.tuning import start as module
from trainer.tuning.settings import Config, parse


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

    monkeypatch.setattr(module, "check_files", check)
    put(tmp_path / "run", 3)
    save = tmp_path / ("run" if is_own else "other")
    flags = ("--task", "copa", "--data", "items", "--init-from", "model", "--save", str(save))
    config = parse([*flags, "--resume", str(tmp_path / "run")], world=1)
    with pytest.raises(CheckedError):
        module.start(config, ALONE)
    # Another folder may be on the disk of one node only, whatever --save is.
    assert [disk is not None for disk in seen] == [is_own]


@pytest.fixture
def starting(tmp_path: Path) -> Callable[..., Config]:
    """Return what reads the command line of a run with one item and a model of 128 positions."""
    model = write_model(tmp_path / "model")

    def read(item: dict[str, object], *flags: object) -> Config:
        write_lines(tmp_path / "train.jsonl", [item])
        given = ("--data", tmp_path, "--save", tmp_path / "run", *model, *flags)
        return parse(list(map(str, given)), world=1)

    return read


@pytest.mark.parametrize(
    ("item", "flags", "remedy"),
    [
        # The padding of a source has positions too.
        (
            {"source": "a", "target": "b"},
            ("--task", "seq2seq", "--by-loss"),
            "--source-length and --target-length of at most 128 each.",
        ),
        (
            {"prompt": "a " * 200, "answer": "b"},
            ("--task", "prompted", "--by-loss"),
            "--length 128: what its pattern lets go is then cut. If that is not enough, shorten "
            "the item, or leave it out.",
        ),
    ],
)
def test_what_can_be_done_about_too_few_positions(
    starting: Callable[..., Config], item: dict[str, object], flags: tuple[str, ...], remedy: str
) -> None:
    with pytest.raises(UserError) as caught:
        module.start(starting(item, *flags), ALONE)
    message = str(caught.value)
    assert "tokens, and the model has 128 positions, which fine-tuning cannot add to" in message
    assert message.endswith(f": give {remedy}")


@pytest.mark.parametrize("task_mask", [True, False])
def test_a_task_learns_whether_the_model_knows_task_masks(
    starting: Callable[..., Config], monkeypatch: pytest.MonkeyPatch, task_mask: bool
) -> None:
    def origin(path: Path, opening: Opening) -> Origin:
        return replace(find_origin(path, opening), task_mask=task_mask)

    def ask(_: Path, asked: Asked) -> list[Question]:
        raise CheckedError(f"task masks: {asked.task_mask}")

    monkeypatch.setattr(module, "find_origin", origin)
    config = starting({}, "--task", "prompted", "--by-loss")
    with pytest.raises(UserError, match=f"task masks: {task_mask}"):
        module.start(replace(config, task=replace(config.task, ask=ask)), ALONE)
