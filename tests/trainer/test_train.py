"""Real runs of the trainer learn the same, however the work is split."""

import json
import math
import re
import time
from collections.abc import Callable, Collection
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.nightly import a_few
from tests.python import ROOT, python
from tests.trainer.corpus import SHAPE, build
from tests.trainer.runs import Trial, events, losses
from trainer.model import model
from trainer.model.loss import LossSums, loss_sums

pytestmark = pytest.mark.slow

FLAGS = (
    *("--batch-size", "8", "--max-steps", "6", "--lr", "0.01", "--dropout", "0"),
    *("--eval-every", "3", "--log-every", "1", "--save-every", "1000"),
)


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return Trial.on_corpus(tmp_path_factory.mktemp("runs"), *FLAGS)


@pytest.fixture(scope="module")
def made(trial: Trial) -> Callable[..., Path]:
    """A function that returns the folder of a run, made once for its flags."""

    def run(*flags: object, stage: int = 0, world: int = 1) -> Path:
        return trial.once(*flags, *trial.zero(stage), world=world)

    return run


def figures(run: Path, event: str) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in line.items() if re.match("loss|accuracy|step", name)}
        for line in events(run, event)
    ]


PLAIN, CAUSAL = "--micro-batch 8", "--micro-batch 8 --objective causal"
DROPPING = "--dropout 0.2 --max-steps 3 --eval-every 0"
PLACES = ((3, 1), (1, 1), (2, 1), (3, 2), (1, 2), (2, 2))
"""Pairs of a ZeRO stage and a number of ranks."""


@pytest.mark.parametrize(
    "way",
    [
        (PLAIN, "--micro-batch 4", 0, 2),
        (CAUSAL, "--micro-batch 4", 0, 2),
        (PLAIN, "--micro-batch 1", 0, 1),
        (PLAIN, "--micro-batch 1", 2, 1),
        (PLAIN, "--checkpoint-activations", 0, 1),
        # A layer that is computed again drops the same values as before.
        (DROPPING, "--checkpoint-activations", 0, 1),
        *a_few([(PLAIN, "--micro-batch 4", *place) for place in PLACES], of_each=3),
    ],
)
def test_however_the_work_is_split_the_same_is_learnt(
    made: Callable[..., Path], way: tuple[str, str, int, int]
) -> None:
    """A way: the common flags, the flags of the split run, its ZeRO stage and number of ranks."""
    common, flags, stage, world = way
    whole = made(*common.split())
    split = made(*common.split(), *flags.split(), stage=stage, world=world)
    for event in ("train", "validation"):
        for one, two in zip(figures(whole, event), figures(split, event), strict=True):
            assert two == pytest.approx(one, abs=1e-5 if stage else 2e-6)
    norms, others = ([line["grad_norm"] for line in events(run, "train")] for run in (whole, split))
    assert others == pytest.approx(norms, rel=1e-3)


def logits_of_three_tokens() -> None:
    """Limit chunks to three tokens, so that ranks need different numbers of chunks."""
    vars(model)["CHUNK_LOGITS"] = 3 * SHAPE["vocab_size"]


def test_chunks_of_the_loss_do_not_keep_ranks_waiting(
    trial: Trial, made: Callable[..., Path]
) -> None:
    run = trial.folder / "chunks"
    flags = (*trial.zero(3), "--micro-batch", 4, "--save", run)
    running = trial.start(*flags, world=2, prepare=logits_of_three_tokens)
    try:
        running.wait(60)
    finally:
        running.kill()
    assert running.codes() == [0, 0], running.output()
    assert losses(run) == pytest.approx(losses(made("--micro-batch", 8)), abs=1e-5)
    shares = [figures(of, "train")[-1]["accuracy"] for of in (run, made("--micro-batch", 8))]
    assert shares[0] == shares[1]


def test_steps_six_to_eight_are_traced(trial: Trial) -> None:
    run = trial.folder / "traced"
    trial.run("--profile", "--max-steps", 17, "--eval-every", 0, "--save", run)
    events = json.loads((run / "profile" / "rank-00000.json").read_text())["traceEvents"]
    steps = {event["name"] for event in events if "ProfilerStep#" in event["name"]}
    assert steps == {f"ProfilerStep#{number}" for number in (5, 6, 7)}  # steps count from 0


def test_deepspeeds_monitors_get_the_figures(trial: Trial) -> None:
    run, settings = trial.folder / "monitored", trial.folder / "monitors.json"
    section = {"enabled": True, "output_path": str(trial.folder / "csv"), "job_name": "small"}
    settings.write_text(json.dumps({"csv_monitor": section}))
    flags = ("--deepspeed", settings, "--save", run, "--max-steps", 2, "--eval-samples", 3)
    began = time.monotonic()
    output = trial.run(*flags, "--eval-every", 1, world=2).output()
    seconds = time.monotonic() - began
    assert re.search(r"validation: 3 of \d+ windows", output)
    rows = {
        path.stem.removesuffix(".csv"): path.read_text().splitlines()
        for path in (trial.folder / "csv" / "small").iterdir()
    }
    for name, wanted in (
        ("Train_Samples_train_loss", losses(run)),
        ("Train_Samples_grad_norm", [line["grad_norm"] for line in events(run, "train")]),
        ("Validation_Samples_loss", losses(run, "validation")),
    ):
        _, *lines = rows[name]
        figures = [line.split(",") for line in lines]
        assert [float(value) for _, value in figures] == pytest.approx(wanted)
        assert [int(samples) for samples, _ in figures] == [8, 16][-len(wanted) :]
    assert len(rows["Train_Samples_lr"]) == 3
    step, waiting = (
        float(rows[f"Train_Samples_{name}"][-1].split(",")[1])
        for name in ("ms_per_step", "waiting")
    )
    assert 1e-3 < step < 1000 * seconds
    assert 0 <= waiting < 1


def test_a_monitor_without_its_package_is_refused(trial: Trial) -> None:
    settings = trial.folder / "wandb.json"
    settings.write_text(json.dumps({"comet": {"enabled": True}}))
    output = trial.run("--deepspeed", settings, code=2, world=2).output()
    assert "enables comet, and comet_ml is not installed: pip install comet_ml" in output
    assert "Traceback" not in output


def test_what_all_ranks_know_is_told_once(trial: Trial) -> None:
    output = trial.run("--frobnicate", code=2, world=2).output()
    assert output.count("trainer.train: unknown flag --frobnicate") == 1
    assert output.count("trainer.train: ") == 1


def test_evaluate_agrees_with_validation(trial: Trial, made: Callable[..., Path]) -> None:
    run = made("--micro-batch", 4, stage=3, world=2)
    output = Trial(trial.folder, (), trial.started, "evaluate").run(run, world=2).output()
    figures_logged = events(run, "validation")[-1]
    assert re.search(r"^held-out text: [\d,]+ tokens with loss$", output, re.MULTILINE)
    for name in ("loss", "accuracy", "loss/spans", "accuracy/web"):
        assert f"{figures_logged[name]:10.4f}  {name}\n" in output


LOSS, GRADIENTS = "the loss is inf", "a gradient is NaN or infinite"


def break_steps(what: str, steps: Collection[int]) -> None:
    """Make training steps give an infinite loss with finite gradients, or NaN gradients."""
    plain, calls = loss_sums, count(1)

    def broken(hidden: torch.Tensor, *args: Any, **more: Any) -> LossSums:
        sums = plain(hidden, *args, **more)
        if hidden.requires_grad and next(calls) in steps:
            if what == LOSS:
                return LossSums(sums.loss + math.inf, *sums[1:])
            hidden.register_hook(lambda gradient: gradient * math.nan)
        return sums

    vars(model)["loss_sums"] = broken


@pytest.mark.parametrize("what", [LOSS, GRADIENTS])
@pytest.mark.parametrize("place", a_few([(2, 2), (0, 1), (1, 1), (3, 1)], of_each=4))
def test_a_step_that_is_not_finite_is_skipped(
    trial: Trial, made: Callable[..., Path], place: tuple[int, int], what: str
) -> None:
    stage, world = place
    run = trial.folder / f"bad-{stage}-{what == LOSS}"
    flags = (*trial.zero(stage), "--micro-batch", 8 // world, "--eval-every", 1, "--save", run)
    output = trial.run(*flags, prepare=partial(break_steps, what, {3}), world=world).output()
    assert f"step 3: {what}; its batch is skipped" in output
    lines, validation = events(run, "train"), losses(run, "validation")
    is_third = [step == 3 for step in range(1, 7)]
    assert [line["loss"] is None for line in lines] == [
        what == LOSS and third for third in is_third
    ]
    assert [line["skipped"] for line in lines] == [0, 0, 1, 0, 0, 0]
    shown = [line for line in output.splitlines() if "  train  " in line]
    assert ["skipped 1" in line for line in shown] == is_third
    assert lines[-1]["bad_losses"] == 1
    assert [line["samples"] for line in lines] == [8 * n for n in range(1, 7)]
    # The model learned nothing from step 2, but something from step 3.
    assert validation[2] == validation[1] != validation[3]
    assert np.isfinite(validation).all()
    usual = losses(made("--micro-batch", 8))
    assert losses(run)[:2] == pytest.approx(usual[:2], abs=1e-5)
    if what == GRADIENTS:  # no step from the third on is applied, and the run gives up
        more = (*flags, "--save", run.with_suffix(".2"), "--max-bad-losses", 3)
        never = partial(break_steps, what, range(3, 9))
        output = trial.run(*more, prepare=never, world=world, code=2).output()
        assert output.count("not finite in 3 steps in a row, the last of them step 5: ") == 1


def test_shards_that_one_rank_lacks_stop_both(trial: Trial) -> None:
    data = trial.folder / "partly"
    build(data)
    for path in data.glob("g0001-00/*/00003.bin"):
        path.unlink()
    output = trial.run("--data", data, "--scatters", 4, code=2, world=2).output()
    assert re.search(r"lacks 2 files that this node needs for\s+scatters 2-3 of 4", output)
    assert output.count("trainer.train: ") == 1
    alone = trial.folder / "alone"
    trial.run("--data", trial.folder / "data", "--scatters", 4, "--save", alone, world=2)
    assert len(losses(alone)) == 6


@pytest.mark.parametrize(
    "launcher",
    a_few(
        [
            ["-m", "deepspeed.launcher.runner", "--num_gpus", "2", "--module"],
            ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"],
        ],
        of_each=2,
    ),
    ids=["deepspeed", "torchrun"],
)
def test_launchers(trial: Trial, made: Callable[..., Path], launcher: list[str]) -> None:
    run = trial.folder / f"by-{launcher[1]}"
    module = ["trainer.train"] if launcher[-1] == "--module" else ["-m", "trainer.train"]
    flags = [*trial.flags, "--micro-batch", "4", "--save", str(run)]
    # The launcher in the environment of the tests must start that environment's Python.
    done = python(*launcher, *module, *flags, at=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert losses(run) == losses(made("--micro-batch", 4, world=2))
