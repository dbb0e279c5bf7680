"""Hints for flags of other trainers name what is there."""

import re
from collections.abc import Callable, Mapping

import pytest

from shards.command import Parser
from shards.errors import UserError
from trainer import config, examining
from trainer.export import __main__ as export
from trainer.generate.asking import parse_asked
from trainer.old_spellings import EVALUATE, EXPORT, FINETUNE, GENERATE, TRAIN
from trainer.tuning import settings

ELSEWHERE = {"--languages", "--validation"}
"""Flags of the pipelines that hints name."""


def flags_of(monkeypatch: pytest.MonkeyPatch, parse: Callable[[], object]) -> set[str]:
    seen: set[str] = set()

    def spy(self: Parser, *_: object) -> None:
        seen.update(self.flags)
        raise UserError("seen")

    with monkeypatch.context() as patch:
        patch.setattr(Parser, "parse_args", spy)
        patch.setattr(Parser, "parse_intermixed_args", spy)
        with pytest.raises(UserError, match="seen"):
            parse()
    return seen


@pytest.mark.parametrize(
    ("old", "parse"),
    [
        (TRAIN, lambda: config.parse([], world=1)),
        (FINETUNE, lambda: settings.parse([], world=1)),
        (EVALUATE, lambda: examining.parse_examination([], world=1)),
        (GENERATE, lambda: parse_asked([])),
        (EXPORT, lambda: export._run([])),
    ],
    ids=["train", "finetune", "evaluate", "generate", "export"],
)
def test_hints_name_flags_that_are_there(
    old: Mapping[str, str], parse: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = flags_of(monkeypatch, parse)
    named = {flag for hint in old.values() for flag in re.findall(r"(?<![\w-])--[a-z-]+", hint)}
    assert named <= ours | ELSEWHERE
    assert not ours & set(old)
    assert all("_" not in flag for flag in old)


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("--train-iters", "here --max-steps N"),
        ("--fp16", "here --precision fp16"),
        ("--bf16", "here --precision fp16, bf16"),
        ("--stage", "here .*zero_optimization.*JSON of --deepspeed"),
        ("--train_micro_batch_size_per_gpu", "here --micro-batch N"),
        ("--tokenizer-type", "the dataset has its tokenizer"),
        ("--train-data", "a dataset holds its tokens: --data DIR"),
        ("--loader-scatter=8", "here --scatters S"),
        ("--batch_size", "did you mean --batch-size"),
        ("--max_steps=3", "did you mean --max-steps"),
        ("--seq-length", "here --length L"),
        ("--load", "--save DIR goes on"),
        ("--save-interval", "here --save-every N"),
        ("--lr-decay-style", "here --schedule"),
        ("--checkpoint_activations", "did you mean --checkpoint-activations"),
        ("--workers", "not needed: a thread of each rank"),
        ("-x", "here --max-steps N"),
    ],
)
def test_flags_that_people_carry_over(flag: str, hint: str) -> None:
    name = flag.partition("=")[0]
    with pytest.raises(UserError, match=f"^unknown flag {name}: {hint}"):
        config.parse(["--data", "x", flag], world=1)


def test_all_unknown_flags_are_told_at_once() -> None:
    with pytest.raises(UserError) as refused:
        config.parse(["--zork", "1", "--micro_batch=4", "--train-iters", "9", "--lr", "x"], world=1)
    assert str(refused.value).splitlines() == [
        "unknown flags:",
        "  --zork",
        "  --micro_batch: did you mean --micro-batch?",
        "  --train-iters: here --max-steps N, --max-tokens N or --epochs N",
        "  python -m trainer.train --help lists every flag",
    ]
