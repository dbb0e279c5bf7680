"""Real runs of fine-tuning: they learn, survive kills, and agree however they are split."""

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.trainer.finetune.lessons import (
    SHAPE,
    TOKENIZER,
    pets,
    write_lesson,
    write_lines,
    write_model,
)

from tests.nightly import a_few
from tests.trainer.runs import Trial, events, kill_minus_nine, losses, put_stages, wait_for_step
from trainer.checkpoints import saver
from trainer.finetune import step
from trainer.finetune.answers import answer
from trainer.opening import Opening
from trainer.tasks.catalogue import find_task
from trainer.tasks.task import TEST, VALIDATION, Asking
from trainer.trained import open_trained

pytestmark = pytest.mark.slow

SHORT = ("--epochs", 2, "--batch-size", 8, "--micro-batch", 4, "--lr", "1e-3", "--log-every", 1)
STEPS = 6
"""Of a short run: 24 items, mirrors included."""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    folder = tmp_path_factory.mktemp("tuning")
    write_lesson(folder / "lesson")
    write_lesson(folder / "short", train=12, others=5)
    put_stages(folder)
    return Trial(folder, ("--task", "copa", *write_model(folder / "model")))


@pytest.fixture(scope="module")
def finetune(trial: Trial) -> Callable[..., Any]:
    def start(*flags: object, data: str = "short", **more: Any) -> Any:
        flags = (*(SHORT if data == "short" else ()), *flags)
        return trial.start("--data", trial.folder / data, *flags, command="finetune", **more)

    return start


@pytest.fixture(scope="module")
def finished(trial: Trial, finetune: Callable[..., Any]) -> Callable[..., Path]:
    """Return the folder of an undisturbed run, made once for its flags."""

    def run(*flags: object, world: int = 1, **more: Any) -> Path:
        folder = trial.folder / "-".join(["run", str(world), *map(str, flags)]).replace("/", "_")
        if not folder.exists():
            running = finetune("--save", folder, *flags, world=world, **more).wait()
            assert running.codes() == [0] * world, running.output()
        return folder

    return run


def test_it_learns_by_heart_and_finds_the_rule(trial: Trial, finished: Callable[..., Path]) -> None:
    run = finished(
        *("--epochs", 8, "--batch-size", 8, "--lr", "2e-3", "--dropout", 0, "--log-every", 12),
        data="lesson",
    )
    last = events(run, "train")[-1]
    assert last["accuracy"] == 1
    assert last["loss"] < 0.05
    accuracies = [event["accuracy"] for event in events(run, "evaluation")]
    assert len(accuracies) == 8
    assert accuracies[-1] == 100
    # Of the test items, whose labels it never saw: they are those of the rule.
    told = lines_of(run / "predictions.jsonl")
    labels = {
        json.dumps({**item, "label": 0, "idx": 0}): item["label"] for item in pets(96, seed=3)
    }
    items = lines_of(trial.folder / "lesson" / "test.jsonl")
    right = [labels[json.dumps({**item, "label": 0, "idx": 0})] for item in reordered(items)]
    hits = sum(line["label"] == label for line, label in zip(told, right, strict=True))
    # The best epoch is the first that gets all of the other items right.
    assert hits >= 18, hits
    assert [line["idx"] for line in told] == list(range(24))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def reordered(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Items with a label where `pets` has it."""
    names = ("premise", "choice1", "choice2", "question", "label", "idx")
    return [{name: item.get(name, 0) for name in names} for item in items]


def test_the_best_epoch_opens_as_a_trained_model(
    trial: Trial, finished: Callable[..., Path]
) -> None:
    run = finished()
    best = max(events(run, "evaluation"), key=lambda event: (event["accuracy"], -event["epoch"]))
    (folder,) = (run / "best").iterdir()
    assert folder.name == f"step-{best['step']}"
    trained = open_trained(run / "best", Opening(tokenizer=TOKENIZER, device="cpu"))
    assert trained.step == best["step"]
    assert trained.objective == "glm"
    task = find_task("copa")
    for split in (VALIDATION, TEST):
        questions = task.questions(
            trial.folder / "short", split=split, tokenizer=trained.tokenizer, asking=Asking()
        )
        given = [one.prediction for one in answer(trained.model, questions)]
        if split == VALIDATION:
            assert task.metrics(questions, given) == {"accuracy": best["accuracy"]}
        else:
            assert task.lines(questions, given) == lines_of(run / "predictions.jsonl")


def test_the_example_of_the_page(
    trial: Trial, finished: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "finetuning.md").read_text()
    code = page.split("```python\n")[1].split("```")[0]
    opened = f'open_trained("{finished()}", Opening(tokenizer="{TOKENIZER}", device="cpu"))'
    code = code.replace('open_trained("runs/copa")', opened)
    code = code.replace('"data/copa"', f'"{trial.folder / "short"}"')
    exec(f"from trainer import Opening\n{code}", {})
    assert capsys.readouterr().out.startswith("{'accuracy': ")


@pytest.mark.parametrize("stage", [pytest.param(1, marks=pytest.mark.nightly), 3])
def test_killed_and_run_again_is_as_if_it_had_not_been(
    trial: Trial, finetune: Callable[..., Any], finished: Callable[..., Path], stage: int
) -> None:
    whole = finished(*trial.zero(stage))
    run = trial.folder / f"killed-{stage}"
    running = finetune("--save", run, *trial.zero(stage))
    wait_for_step(run, 4, running)
    running.kill()
    again = finetune("--save", run, *trial.zero(stage)).wait()
    assert again.codes() == [0], again.output()
    assert events(run) == events(whole)
    assert [event["step"] for event in events(run, "train")] == list(range(1, STEPS + 1))
    assert len(set(losses(run))) == STEPS
    for name in ("best", "predictions.jsonl"):
        assert content(run / name) == content(whole / name)


def content(path: Path) -> object:
    return path.read_text() if path.is_file() else sorted(one.name for one in path.iterdir())


def kill_while_saving() -> None:
    """Make the second checkpoint end in a power cut, before its list is written."""
    write: Callable[..., Any] = saver.write_json
    calls: list[Path] = []

    def cut(path: Path, value: object) -> Any:
        calls.append(path)
        return write(path, value) if len(calls) < 2 else kill_minus_nine()

    vars(saver)["write_json"] = cut


def test_killed_while_saving(
    trial: Trial, finetune: Callable[..., Any], finished: Callable[..., Path]
) -> None:
    run = trial.folder / "cut"
    cut = finetune("--save", run, "--save-every", 2, prepare=kill_while_saving).wait()
    assert cut.codes() == [-signal.SIGKILL], cut.output()
    again = finetune("--save", run, "--save-every", 2).wait()
    assert "resumes after step 2" in again.output()
    assert events(run) == events(finished())


def stop_in_evaluation() -> None:
    """Ask the run to stop when it has answered the first questions of its first evaluation."""
    answers: Callable[..., Any] = step.answers_in

    def stop(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return answers(*arguments)

    vars(step)["answers_in"] = stop  # in a process of its own


def kill_at_a_list() -> None:
    """Cut the power when the first list of a checkpoint is to be written."""
    vars(saver)["write_json"] = lambda *_: kill_minus_nine()


@pytest.mark.nightly
def test_stopped_in_an_evaluation_and_killed_after_the_next(
    trial: Trial, finetune: Callable[..., Any], finished: Callable[..., Path]
) -> None:
    run = trial.folder / "evaluating"
    stopped = finetune("--save", run, prepare=stop_in_evaluation).wait()
    assert stopped.codes() == [128 + signal.SIGTERM], stopped.output()
    assert not events(run, "evaluation")
    cut = finetune("--save", run, prepare=kill_at_a_list).wait()
    assert cut.codes() == [-signal.SIGKILL], cut.output()
    again = finetune("--save", run).wait()
    assert "resumes after step 3" in again.output()
    logged = events(run)
    # The evaluation that the cut run had logged is there twice.
    assert logged.count(events(run, "evaluation")[0]) == 2
    assert [e for at, e in enumerate(logged) if e not in logged[:at]] == events(finished())
    for name in ("best", "predictions.jsonl"):
        assert content(run / name) == content(finished() / name)


def test_a_choice_that_diverges_has_no_best_epoch(
    trial: Trial, finetune: Callable[..., Any]
) -> None:
    run = trial.folder / "diverged"
    running = finetune("--save", run, "--lr", "1e30", "--warmup", 0).wait()
    assert running.codes() == [2], running.output()
    assert "epoch 2/2 is not evaluated: the loss was not finite" in running.output()
    assert "no epoch counts as the best" in running.output()
    assert "Traceback" not in running.output()
    assert not (run / "best").exists()
    assert not (run / "predictions.jsonl").exists()


@pytest.mark.nightly
def test_stopped_by_a_signal(
    trial: Trial, finetune: Callable[..., Any], finished: Callable[..., Path]
) -> None:
    run = trial.folder / "stopped"
    running = finetune("--save", run, world=2)
    wait_for_step(run, 1, running)
    running.signal(signal.SIGTERM, 1)
    assert running.wait().codes() == [128 + signal.SIGTERM] * 2, running.output()
    assert finetune("--save", run, world=2).wait().codes() == [0, 0]
    assert events(run) == events(finished(world=2))


@pytest.mark.nightly
def test_ranks_and_micro_batches_change_nothing(
    trial: Trial, finished: Callable[..., Path]
) -> None:
    # Dropout is on. 24 items in batches of 10: the last one is short, and one rank has more of it.
    flags = ("--batch-size", 10, "--micro-batch", 1, *trial.zero(3))
    alone = finished("--batch-size", 10, "--micro-batch", 10)
    both = finished(*flags, world=2)
    assert len(losses(alone)) == 6
    assert losses(both) == pytest.approx(losses(alone), rel=1e-4)
    assert content(both / "predictions.jsonl") == content(alone / "predictions.jsonl")


@pytest.mark.nightly
def test_another_number_of_ranks(
    trial: Trial, finetune: Callable[..., Any], finished: Callable[..., Path]
) -> None:
    whole = finished(*trial.zero(1))
    run = trial.folder / "fewer"
    running = finetune("--save", run, *trial.zero(1), world=2)
    while not list(run.glob("step-3/whole-*.json")):
        assert all(process.is_alive() for process in running.processes), running.output()
        time.sleep(0.02)
    running.kill()
    again = finetune("--save", run, *trial.zero(1)).wait()
    assert "resumes after step" in again.output()
    assert losses(run) == pytest.approx(losses(whole), rel=1e-4)


@pytest.fixture(scope="module")
def said(trial: Trial) -> list[object]:
    """Return the flags of a task whose answers are written: a prompt names what is to be said."""
    folder = trial.folder / "said"
    folder.mkdir()
    words = ("dog", "cat", "house", "river", "book", "tree", "song", "door")
    for number, split in enumerate(("train", "val", "test")):
        chosen = words[: 8 if not number else 3]
        items = [
            {"prompt": f"The word is {word}.", "answer": f"A {word} it is."} for word in chosen
        ]
        items = [item | {"prompt": item["prompt"] * (1 + i % 2)} for i, item in enumerate(items)]
        write_lines(folder / f"{split}.jsonl", items * (1 if number else 10))
    flags = ["--task", "prompted", "--data", folder, "--epochs", 4, "--batch-size", 8]
    return [*flags, "--micro-batch", 2, "--lr", "5e-3", "--dropout", 0, "--max-answer", 16]


@pytest.mark.parametrize(
    ("stage", "world"), [(0, 1), pytest.param(3, 2, marks=pytest.mark.nightly)]
)
def test_texts(
    trial: Trial, finetune: Callable[..., Any], said: list[object], stage: int, world: int
) -> None:
    run = trial.folder / f"texts-{stage}"
    more: tuple[object, ...] = ("--across-epochs", "--beams", 3)
    if stage == 0:
        # A model that reads from left to right, too.
        causal = write_model(trial.folder / "causal", replace(SHAPE, block_positions=False))
        more = ("--by-loss", *causal)
    more = (*more, *trial.zero(stage))
    running = finetune("--save", run, *said, *more, data="said", world=world).wait()
    assert running.codes() == [0] * world, running.output()
    last = events(run, "evaluation")[-1]
    assert last["token_accuracy"] > 0.95
    assert ("rouge-l" in last) is (stage == 3)
    told = lines_of(run / "predictions.jsonl")
    assert [line["prediction"] for line in told] == [line["reference"] for line in told]
    assert told[0]["prediction"] == "A dog it is."


@pytest.mark.parametrize("judged", a_few([("--by-loss",), ("--beams", 3)], of_each=2))
def test_texts_that_diverge(
    trial: Trial, finetune: Callable[..., Any], said: list[object], judged: tuple[object, ...]
) -> None:
    # One step an epoch: the loss of the first is finite, that of the evaluation after it is not.
    run = trial.folder / f"texts-diverged{judged[0]}"
    flags = (*judged, "--lr", "1e30", "--warmup", 0, "--batch-size", 80)
    running = finetune("--save", run, *said, *flags, data="said").wait()
    assert running.codes() == [2], running.output()
    assert "none counts so far" in running.output()
    assert "no epoch counts as the best" in running.output()
    assert "Traceback" not in running.output()


def test_without_other_files(trial: Trial, finetune: Callable[..., Any]) -> None:
    (trial.folder / "alone").mkdir()
    write_lines(trial.folder / "alone" / "train.jsonl", pets(8, seed=4))
    run = trial.folder / "lonely"
    output = finetune("--save", run, *SHORT, data="alone").wait().output()
    assert "there is no val.jsonl" in output
    assert "epoch 2/2  steps 4\n" in output
    assert "the best so far" not in output
    assert (run / "best" / "step-4").is_dir()
    assert not (run / "predictions.jsonl").exists()
    more = ("--epochs", 3, "--weight-decay", 0.5)
    output = finetune("--save", run, *SHORT, *more, data="alone").wait().output()
    assert "from step 5 on epochs is 3; it was 2" in output
    assert "from step 5 on weight_decay is 0.5; it was 0.1" in output
    assert (run / "best" / "step-6").is_dir()


def test_more_epochs_leave_no_items_out(
    finetune: Callable[..., Any], finished: Callable[..., Path]
) -> None:
    across = ("--across-epochs", "--batch-size", 10, "--micro-batch", 10)
    more = finetune("--save", finished(*across), *across, "--epochs", 5).wait()
    assert more.codes() == [2], more.output()
    told = " ".join(more.output().split())
    assert "begin 2 items further on, which epoch 3 would lack" in told


REFUSED = {
    "another loss": (["--loss", "hinge"], "loss was cross_entropy, now it is hinge"),
    "other items": (["--data", "{folder}/lesson"], "items.test was "),
}
"""What the refusal rows of finetune do not have."""


@pytest.mark.parametrize(("flags", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(
    trial: Trial,
    finetune: Callable[..., Any],
    finished: Callable[..., Path],
    flags: list[object],
    message: str,
) -> None:
    given = [str(flag).format(folder=trial.folder) for flag in flags]
    running = finetune("--save", finished(), *given).wait()
    assert running.codes() == [2], running.output()
    assert message in " ".join(running.output().split())
    assert "Traceback" not in running.output()
