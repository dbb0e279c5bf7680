"""Real runs of fine-tuning learn, survive kills, and agree however the work is split."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.golden.corpora import write_jsonl
from tests.trainer.finetune.lessons import pets, write_lesson, write_model
from tests.trainer.runs import (
    Trial,
    before_a_file_is_whole,
    events,
    kill_minus_nine,
    losses,
    put_stages,
    wait_for_step,
)
from tests.trainer.saved import TOKENIZER
from trainer.finetune.scoring import Scoring

pytestmark = pytest.mark.slow

SHORT = ("--epochs", 2, "--batch-size", 8, "--micro-batch", 4, "--lr", "1e-3", "--log-every", 1)
STEPS = 6
"""The number of steps of a short run on 24 items, including the mirrored items."""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """A trial whose runs are short unless flags say otherwise."""
    folder = tmp_path_factory.mktemp("tuning")
    write_lesson(folder / "lesson")
    write_lesson(folder / "short", train=12, others=5)
    put_stages(folder)
    flags = ("--task", "copa", *write_model(folder / "model"), "--data", folder / "short", *SHORT)
    return Trial(folder, tuple(map(str, flags)), command="finetune")


def test_it_learns_by_heart_and_finds_the_rule(trial: Trial) -> None:
    run = trial.once(
        *("--data", trial.folder / "lesson", "--epochs", 8, "--batch-size", 8, "--lr", "2e-3"),
        *("--dropout", 0, "--log-every", 12),
    )
    last = events(run, "train")[-1]
    assert last["accuracy"] == 1
    assert last["loss"] < 0.05
    accuracies = [event["accuracy"] for event in events(run, "evaluation")]
    assert len(accuracies) == 8
    assert accuracies[-1] == 100
    # For the test items, whose labels the model never saw, the predictions follow the rule.
    told, items = (
        lines_of(folder / name)
        for folder, name in ((run, "predictions.jsonl"), (trial.folder / "lesson", "test.jsonl"))
    )
    right = [("dog" in item["choice1"]) != (item["question"] == "cause") for item in items]
    hits = sum(line["label"] == label for line, label in zip(told, right, strict=True))
    # The best epoch is the first in which the model gets all validation items right.
    assert hits >= 18, hits
    assert [line["idx"] for line in told] == list(range(24))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_example_of_the_page_opens_the_best_epoch(
    trial: Trial, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "finetuning.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    run = trial.once()
    best = max(events(run, "evaluation"), key=lambda event: (event["accuracy"], -event["epoch"]))
    opened = f'open_model("{run}/best", LoadOptions(tokenizer="{TOKENIZER}", device="cpu"))'
    code = code.replace('open_model("runs/copa")', opened)
    code = code.replace('"data/copa"', f'"{trial.folder / "short"}"')
    facts = "print(trained.source.step, trained.model.attention, trained.model.training)"
    exec(f"from trainer import LoadOptions\n{code}\n{facts}", {})
    shown = f"{ {'accuracy': best['accuracy']} }\n{best['step']} sdpa False\n"
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("stage", [pytest.param(1, marks=pytest.mark.nightly), 3])
def test_killed_and_run_again_is_as_if_it_had_not_been(trial: Trial, stage: int) -> None:
    whole = trial.once(*trial.zero(stage))
    run = trial.folder / f"killed-{stage}"
    running = trial.start("--save", run, *trial.zero(stage))
    wait_for_step(run, 4, running)
    running.kill()
    trial.run("--save", run, *trial.zero(stage))
    assert events(run) == events(whole)
    assert [event["step"] for event in events(run, "train")] == list(range(1, STEPS + 1))
    assert len(set(losses(run))) == STEPS
    for name in ("best", "predictions.jsonl"):
        assert content(run / name) == content(whole / name)


def content(path: Path) -> object:
    return path.read_text() if path.is_file() else sorted(one.name for one in path.iterdir())


def stop_in_evaluation() -> None:
    """Make the run stop after it has answered the first questions of its first evaluation."""
    answers: Callable[..., Any] = Scoring.predictions

    def stop(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return answers(*arguments)

    Scoring.predictions = stop  # type: ignore[method-assign]  # in a process of its own


def kill_at_a_list() -> None:
    """Make the process die when it is about to write the first list of a checkpoint."""
    before_a_file_is_whole(lambda path: kill_minus_nine() if "whole-" in path.name else None)


@pytest.mark.nightly
def test_stopped_in_an_evaluation_and_killed_after_the_next(trial: Trial) -> None:
    run = trial.folder / "evaluating"
    trial.run("--save", run, prepare=stop_in_evaluation, code=128 + signal.SIGTERM)
    assert not events(run, "evaluation")
    trial.run("--save", run, prepare=kill_at_a_list, code=-signal.SIGKILL)
    again = trial.run("--save", run)
    assert "resumes after step 3" in again.output()
    logged = events(run)
    # The evaluation that the killed run had logged is there twice.
    assert logged.count(events(run, "evaluation")[0]) == 2
    assert [e for at, e in enumerate(logged) if e not in logged[:at]] == events(trial.once())
    for name in ("best", "predictions.jsonl"):
        assert content(run / name) == content(trial.once() / name)


def test_a_choice_that_diverges_has_no_best_epoch(trial: Trial) -> None:
    run = trial.folder / "diverged"
    output = trial.run("--save", run, "--lr", "1e30", "--warmup", 0, code=2).output()
    assert "epoch 2/2 is not evaluated: the loss or the gradients were not finite" in output
    assert "no epoch counts as the best" in output
    assert "Traceback" not in output
    assert not (run / "best").exists()
    assert not (run / "predictions.jsonl").exists()


@pytest.mark.nightly
@pytest.mark.parametrize("task", ["copa", "prompted"])
def test_ranks_and_micro_batches_change_nothing(trial: Trial, task: str) -> None:
    """This also holds for texts, which are written while no rank has the whole model."""
    folder = trial.folder / "said"
    for split, number in (("train", 24), ("val", 3), ("test", 3)):
        said = ({"prompt": f"Say {word}.", "answer": f"A {word} it is."} for word in range(number))
        write_jsonl(folder / f"{split}.jsonl", said)
    texts = ("--task", task, "--data", folder, "--max-answer", 6, "--beams", 3)
    # With 24 items in batches of 10, the last batch is short, and one rank gets more items of it
    # than the other.
    flags = ("--batch-size", 10, "--dropout", 0, *(texts if task == "prompted" else ()))
    alone = trial.once(*flags, "--micro-batch", 10)
    both = trial.once(*flags, "--micro-batch", 1, *trial.zero(3), world=2)
    assert len(losses(alone)) == 6
    assert losses(both) == pytest.approx(losses(alone), rel=1e-4)
    assert content(both / "predictions.jsonl") == content(alone / "predictions.jsonl")


def test_without_other_files(trial: Trial) -> None:
    write_jsonl(trial.folder / "alone" / "train.jsonl", pets(8, seed=4))
    run = trial.folder / "lonely"
    output = trial.run("--save", run, "--data", trial.folder / "alone").output()
    assert "there is no val.jsonl" in output
    assert "epoch 2/2  steps 4\n" in output
    assert "the best so far" not in output
    assert (run / "best" / "step-4").is_dir()
    assert not (run / "predictions.jsonl").exists()
    more = ("--epochs", 3, "--weight-decay", 0.5)
    output = trial.run("--save", run, "--data", trial.folder / "alone", *more).output()
    assert "from step 5 on epochs is 3; it was 2" in output
    assert "from step 5 on weight_decay is 0.5; it was 0.1" in output
    assert (run / "best" / "step-6").is_dir()


def test_more_epochs_leave_no_items_out(trial: Trial) -> None:
    across = ("--across-epochs", "--batch-size", 10, "--micro-batch", 10)
    more = trial.run("--save", trial.once(*across), *across, "--epochs", 5, code=2)
    told = " ".join(more.output().split())
    assert "begin 2 items further on, which epoch 3 would lack" in told
