from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.alone import ALONE
from tests.trainer.checkpoints.test_checkpoint import put
from tests.trainer.tuning.lessons import write_lines, write_model
from trainer.checkpoints.disk import Disk
from trainer.opening import Opening
from trainer.stop import Stop
from trainer.tasks.question import Question
from trainer.tasks.rows import causal_row
from trainer.tasks.task import TRAIN, VALIDATION, TaskContext
from trainer.trained import Origin, find_origin
from trainer.tuning import start as module
from trainer.tuning.order import Order
from trainer.tuning.settings import Config, parse


def config(*flags: str) -> Config:
    return parse(["--data", "items", "--init-from", "model", "--save", "run", *flags], world=1)


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
        module.start(config, ALONE, stop=Stop())
    # Another folder may be on the disk of one node only, whatever --save is.
    assert [disk is not None for disk in seen] == [is_own]


DECISIVE = {
    "by_loss": ("--by-loss",),
    "beams": ("--beams", "2"),
    "no_repeat_ngram": ("--no-repeat-ngram", "3"),
    "min_answer": ("--min-answer", "2"),
    "max_answer": ("--max-answer", "9"),
    "label_smoothing": ("--label-smoothing", "0.1"),
    "beam_penalty": ("--beams", "2", "--beam-penalty", "1"),
}


@pytest.mark.parametrize(("name", "flags"), DECISIVE.items(), ids=DECISIVE)
def test_what_decides_figures_stays(name: str, flags: tuple[str, ...]) -> None:
    before, now = (module._decisive(config("--task", "seq2seq", *more), {}) for more in ((), flags))
    state = {"identity": {}, "tuning": before}
    checkpoint: Any = SimpleNamespace(state=state, folder=Path("step-3"))
    module._check_same_run(checkpoint, state)
    with pytest.raises(UserError, match=f"cannot resume from step-3: {name} was "):
        module._check_same_run(checkpoint, {"identity": {}, "tuning": now})


def test_another_tokenizer_is_told_by_its_name() -> None:
    before, now = ({"name": name, "sha256": digit * 64} for name, digit in (("a", "0"), ("b", "1")))
    state = {"identity": {"tokenizer": before}, "tuning": {}}
    checkpoint: Any = SimpleNamespace(state=state, folder=Path("step-3"))
    with pytest.raises(UserError, match=r"step-3: tokenizer was a, now it is b\."):
        module._check_same_run(checkpoint, {"identity": {"tokenizer": now}, "tuning": {}})


def test_more_epochs_leave_no_items_out() -> None:
    ended = Order(num_items=10, batch_size=4, epochs=3, seed=0, across_epochs=True)

    def check(step: int, order: Order) -> None:
        state = {"schedule": {"epochs": ended.epochs}}
        checkpoint: Any = SimpleNamespace(folder=Path("run/step"), step=step, state=state)
        module._check_no_items_lost(checkpoint, order)

    more = replace(ended, epochs=5)
    assert ended.items(ended.steps) != more.items(ended.steps)
    with pytest.raises(UserError, match=r"--epochs 5: .* begin 2 items further on, which epoch 4"):
        check(ended.steps, more)
    check(ended.steps - 1, more)
    check(ended.steps, ended)
    check(9, replace(more, across_epochs=False))


ROWS = tuple(causal_row([1, 2], [3, 4]) for _ in range(2))
CHOICES = Question(guid="0", idx=0, rows=ROWS, label=0)
WORDS = Question(guid="0", idx=0, rows=ROWS[:1], label=0, words=(5, 6))
TEXT = Question(guid="0", idx=0, rows=ROWS[:1], label=None)
USES = {
    "--loss hinge": [CHOICES, WORDS],
    "--length-penalty 1": [CHOICES],
    "--label-smoothing 0.1": [TEXT],
}


@pytest.mark.parametrize("flags", USES)
@pytest.mark.parametrize("question", [CHOICES, WORDS, TEXT])
def test_flags_without_use(flags: str, question: Question) -> None:
    tuning = config("--task", "copa", *flags.split()).tuning
    if question in USES[flags]:
        module._check_uses(tuning, {TRAIN: [question]})
        return
    with pytest.raises(UserError, match=f"{flags.split(maxsplit=1)[0]} .*; copa has no use for it"):
        module._check_uses(tuning, {TRAIN: [question]})


def test_without_other_items_there_is_nothing_to_pick_by() -> None:
    tuning = config("--task", "seq2seq", "--by-loss").tuning
    module._check_uses(tuning, {TRAIN: [TEXT], VALIDATION: [TEXT]})
    with pytest.raises(UserError, match=r"--by-loss picks the best epoch by val.jsonl, which is"):
        module._check_uses(tuning, {TRAIN: [TEXT]})


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
        module.start(starting(item, *flags), ALONE, stop=Stop())
    message = str(caught.value)
    assert "tokens, and the model has 128 positions, which fine-tuning cannot add to" in message
    assert message.endswith(f": give {remedy}")


@pytest.mark.parametrize("task_mask", [True, False])
def test_a_task_learns_whether_the_model_knows_task_masks(
    starting: Callable[..., Config], monkeypatch: pytest.MonkeyPatch, task_mask: bool
) -> None:
    def origin(path: Path, opening: Opening) -> Origin:
        return replace(find_origin(path, opening), task_mask=task_mask)

    def ask(_: Path, asked: TaskContext) -> list[Question]:
        raise CheckedError(f"task masks: {asked.task_mask}")

    monkeypatch.setattr(module, "find_origin", origin)
    given = starting({}, "--task", "prompted", "--by-loss")
    with pytest.raises(UserError, match=f"task masks: {task_mask}"):
        module.start(replace(given, task=replace(given.task, ask=ask)), ALONE, stop=Stop())
