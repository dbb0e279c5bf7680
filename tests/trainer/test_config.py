import argparse
import re
from pathlib import Path
from typing import Any

import pytest
from torch.distributed.run import get_args_parser

from tests.trainer.alone import configured
from tests.trainer.test_launch import LAUNCH
from trainer.config import TrainConfig
from trainer.data import blank_options
from trainer.deepspeed import presets

BASE = ("--data", "somewhere", "--model", "tiny", "--batch-size", "8", "--max-steps", "10")


def deepspeed_flags(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    from deepspeed.launcher import runner  # noqa: PLC0415 - loads DeepSpeed, for this test alone

    seen: list[str] = []

    def spy(self: argparse.ArgumentParser, *_: Any, **__: Any) -> argparse.Namespace:
        seen.extend(self._option_string_actions)
        raise SystemExit

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", spy)
    with pytest.raises(SystemExit):
        runner.parse_args([])
    return seen


def test_no_flag_is_taken_for_a_launcher_s(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = TrainConfig.parser("python -m trainer.train")._option_string_actions
    torchrun, deepspeed = get_args_parser()._option_string_actions, deepspeed_flags(monkeypatch)
    assert {"--model", "--max-steps", "--resume", "--blanks", "--scatters"} <= set(ours)
    assert {"--log-dir", "--max-restarts"} <= set(torchrun)
    assert "--num_gpus" in deepspeed
    # The scripts of trainer/launch pass only flags that the launchers have.
    for name, theirs in (("torchrun", torchrun), ("deepspeed", deepspeed)):
        for script in LAUNCH.glob(f"{name}*.sh"):
            (words,) = re.findall(rf"exec {name} (.*?) -?-m", script.read_text(), re.DOTALL)
            assert {*re.findall(r"--[\w-]+", words)} <= {*theirs}
    # The prefix of several launcher flags is an error anywhere; that of only one, only before the
    # script.
    for theirs in (torchrun, deepspeed):
        starts = {flag: [other for other in theirs if other.startswith(flag)] for flag in ours}
        assert not [flag for flag, found in starts.items() if len(found) > 1 and flag not in found]


def test_what_is_given_wins_over_recipe_and_json() -> None:
    plain = configured(["--recipe", "glm-large", "--data", "x"], world=4)
    assert (plain.model, plain.lr, plain.betas) == ("glm-large", 2e-4, (0.9, 0.98))
    assert plain.sampling_plan().batch_size(0) == 1024
    assert plain.deepspeed["train_micro_batch_size_per_gpu"] == 16
    changed = configured(
        ["--lr", "1e-3", "--recipe", "glm-large", "--data", "x", "--blanks", "bert_prob=0.5"],
        world=4,
    )
    assert changed.lr == 1e-3
    options = blank_options(changed.blanks)
    assert (options.bert_prob, options.task_mask) == (0.5, False)


@pytest.mark.parametrize(
    ("recipe", "flags", "steps"),
    [
        ("--steps 5", ["--max-tokens", "2048"], 1),
        ("--max-steps 5", ["--max-tokens=2048"], 1),
        ("--max-tokens 2048", ["--max-steps", "7"], 7),
        ("--max-steps 5", ["--max-tokens", "2049"], 2),
        ("--steps 5", [], 5),
    ],
)
def test_the_end_that_is_given_wins_over_a_recipe_s(
    tmp_path: Path, recipe: str, flags: list[str], steps: int
) -> None:
    path = tmp_path / "mine.args"
    path.write_text(f"--model tiny --batch-size 8 {recipe} --betas 0.8 0.9\n")
    config = configured(["--recipe", str(path), "--data", "x", *flags])
    assert config.steps == steps
    assert config.betas == (0.8, 0.9)


@pytest.mark.parametrize("name", presets("args"))
def test_recipes(name: str) -> None:
    config = configured(["--recipe", name, "--data", "x"], world=8)
    assert config.steps is not None
    schedule = config.schedule_of(config.steps)
    assert schedule.decay <= config.steps
    assert (config.length or 0) <= config.shape.max_positions
    blank_options(config.blanks)


def test_launchers_may_tell_the_local_rank() -> None:
    assert configured(["--local_rank=1", *BASE], world=2) == configured(BASE, world=2)
