import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from shards.console import run_module
from shards.manifest import read_manifest, write_manifest
from tests.trainer.alone import ALONE
from tests.trainer.corpus import build
from tests.trainer.runs import Trial, events
from tests.trainer.tasks.harness import FOLDER, SHAPE, tokenizer
from trainer.evaluate import EvaluateModel
from trainer.evaluating import evaluate_model
from trainer.log import TASKS, VALIDATION, read_run_log
from trainer.plot import curves

TOKENIZER = f"hf:{FOLDER / 'tokenizer.json'}"
EXAMS = ("hellaswag", "lambada", "wikitext")


def evaluated(words: Sequence[str]) -> int:
    command = EvaluateModel.read(words, "python -m trainer.evaluate")
    return evaluate_model(command, ALONE)


def flags(name: str) -> list[str]:
    return [word for exam in EXAMS for word in (name, f"{exam}={FOLDER / exam}.jsonl")]


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    folder = tmp_path_factory.mktemp("runs")
    build(folder / "data")
    manifest = read_manifest(folder / "data")
    # As if its texts had been encoded by the tokenizer of the exams.
    entry = replace(manifest.tokenizer, sha256=tokenizer().sha256)
    write_manifest(folder / "data", replace(manifest, tokenizer=entry))
    for name, blocks in (("causal", False), ("glm", True)):
        shape = asdict(replace(SHAPE, block_positions=blocks))
        (folder / f"{name}.json").write_text(json.dumps(shape))
    (folder / "zero3.json").write_text(json.dumps({"zero_optimization": {"stage": 3}}))
    steps = ("--batch-size", "4", "--max-steps", "2", "--eval-every", "1", "--lr", "0.01")
    asked = (*flags("--eval-task"), "--tokenizer", TOKENIZER, "--dropout", "0", "--length", "64")
    return Trial(folder, ("--data", str(folder / "data"), *steps, *asked))


def figures(run: Path) -> list[dict[str, Any]]:
    """Return what was logged of the tasks: steps, and figures as FIGURE/NAME."""
    return [
        {name: value for name, value in event.items() if name != "event"}
        for event in events(run, TASKS)
    ]


def held_out(run: Path) -> str:
    """Return the line of the loss that was logged last."""
    return f"{events(run, VALIDATION)[-1]['loss']:10.4f}  loss\n"


@pytest.mark.nightly
def test_a_causal_run_in_training_and_after_it(
    trial: Trial, capsys: pytest.CaptureFixture[str]
) -> None:
    causal = ("--objective", "causal", "--model", trial.folder / "causal.json")
    alone, parted = trial.folder / "alone", trial.folder / "parted"
    running = trial.run(*causal, "--save", alone)
    zero3 = ("--deepspeed", trial.folder / "zero3.json")
    trial.run(*causal, *zero3, "--save", parted, world=2)
    assert [event["step"] for event in figures(alone)] == [1, 2]
    assert "step 2/2  tasks  hellaswag acc 0." in running.output()
    for one, other in zip(figures(alone), figures(parted), strict=True):
        assert one == pytest.approx(other, rel=1e-4)
    argv = [str(alone), "--dtype", "fp32", "--tokenizer", TOKENIZER, *flags("--task")]
    assert evaluated(argv) == 0
    shown = capsys.readouterr().out
    assert f"{alone / 'step-2'}, step 2: causal" in shown
    assert "hellaswag: 16 items" in shown
    for name, value in figures(alone)[-1].items():
        if "/" in name:
            assert f"{value:12.4f}  {name.partition('/')[0]}" in shown
    assert set(curves(read_run_log(alone), TASKS, "acc")) == {"hellaswag", "lambada"}
    resumed = trial.run(*causal, "--resume", alone, command="evaluate").output()
    assert held_out(alone) in resumed
    assert shown.partition("causal\n")[2] in resumed
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    assert run_module("trainer.plot", [str(alone), str(parted)]) == 0
    assert (alone / "curves.png").is_file()
