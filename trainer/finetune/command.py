"""The command `python -m trainer.finetune`: trains a model on a task, and evaluates it.

    python -m trainer.finetune --task copa --data COPA --init-from build/run --save build/copa
    deepspeed --module trainer.finetune …        torchrun --nproc-per-node 8 -m trainer.finetune …

The defaults are those of THUDM/GLM (commit 4f61ed7, scripts/finetune_superglue.sh).
"""

import argparse
from dataclasses import MISSING, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from shards.commands.flags import (
    count,
    flag_of,
    local_path,
    non_defaults,
    option,
    options_of,
    positive,
    same_option,
)
from shards.errors import UserError
from shards.sampling.plan import FIXED
from trainer.config import (
    CHECKPOINTS,
    EPOCH,
    MODEL,
    OPTIMIZER,
    RunConfig,
    fraction,
    non_negative,
    run_folder,
)
from trainer.deepspeed import FINETUNE, batch_size_of
from trainer.generate.decoding import Decoding
from trainer.schedule import LINEAR
from trainer.tasks.catalogue import TASKS, find_task
from trainer.tasks.task import ASKED, PromptOptions, Task
from trainer.tasks.texts import TARGET_LENGTH

CROSS_ENTROPY, HINGE, GENERATIVE, MIX = LOSSES = ("cross_entropy", "hinge", "generative", "mix")
"""The losses of questions with choices (`losses` in scoring.py)."""

ITEMS = "task"
LEARNING, WRITING = "training", "text generation"
"""Titles in `--help`, in addition to the titles of trainer.train."""
_OF_WRITING = ("beams", "no_repeat_ngram", "min_answer", "max_answer", "by_loss")
"""Options that only tasks with generated text use."""
_BATCH_SIZE = 16
_SEEDS = 2**63
"""Seeds are below this number, so that torch accepts the seed of every epoch."""


def _seed(text: str) -> int:
    value = count(text)
    if value >= _SEEDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number below {_SEEDS}")
    return value


@dataclass(frozen=True, kw_only=True)
class Finetune(RunConfig, PromptOptions):
    """Fine-tune a model on a task."""

    WORK = "trainer.finetune.task:finetune"
    USAGE = "%(prog)s --task NAME --data FOLDER --init-from PATH --save DIR [FLAG ...]"
    GROUPS = (ITEMS, MODEL, ASKED, LEARNING, WRITING)
    RECIPES = FINETUNE

    task: str = option(
        MISSING,
        f"Task: one of {', '.join(TASKS)}; or FILE.json with your own.",
        metavar="NAME",
        group=ITEMS,
    )
    data: Path = option(MISSING, metavar="FOLDER", type=local_path)
    """Folder with train.jsonl, and optionally val.jsonl and test.jsonl."""
    init_from: Path = option(MISSING, metavar="PATH", type=local_path)
    """Trained model: a run of trainer.train, one of its checkpoints, or a published checkpoint."""
    epochs: int = option(50, type=positive, group=LEARNING)
    """Number of epochs."""
    batch_size: int = option(
        0,
        "Number of items per step, on all ranks together. Default: the size that --micro-batch and "
        f"DeepSpeed's JSON give, else {_BATCH_SIZE}.",
        metavar="B",
        type=positive,
        metadata=FIXED,
    )
    across_epochs: bool = option(False, metadata=FIXED)
    """Fill up the last batch of an epoch with items of the next one. Default: that batch is
    smaller."""
    loss: str = option(CROSS_ENTROPY, choices=LOSSES, metadata=FIXED)
    """Loss of tasks with choices (docs/finetuning.md)."""
    length_penalty: float = option(0.0, metavar="P", type=non_negative, metadata=FIXED)
    """Divide the score of a choice by its number of tokens to the power of P; 0: do not."""
    label_smoothing: float = option(0.0, metavar="E", type=fraction, metadata=FIXED)
    """Text tasks: share of each target that is spread over the vocabulary."""
    dropout: float = same_option(RunConfig, "dropout", default=0.1)
    seed: int = option(1234, metavar="S", type=_seed, metadata=FIXED)
    """Random seed for item order and dropout."""
    lr: float = same_option(RunConfig, "lr", default=1e-5, group=OPTIMIZER)
    schedule: str = same_option(RunConfig, "schedule", default=LINEAR)
    warmup: float = same_option(RunConfig, "warmup", default=0.1)
    betas: tuple[float, ...] = same_option(RunConfig, "betas", default=(0.9, 0.999))
    beams: int = same_option(Decoding, "beams", group=WRITING, metadata=FIXED)
    no_repeat_ngram: int = same_option(Decoding, "no_repeat_ngram", metadata=FIXED)
    min_answer: int = option(0, type=count, metadata=FIXED)
    """Minimum number of tokens per text."""
    max_answer: int | None = option(None, type=positive, metadata=FIXED)
    """Maximum number of tokens per text. Default: --target-length of the task."""
    by_loss: bool = option(False, metadata=FIXED)
    """Text tasks: choose the best epoch by the loss on val.jsonl, and generate texts only for
    test.jsonl."""
    save: Path = option(MISSING, metavar="DIR", type=run_folder, group=CHECKPOINTS)
    """Folder for checkpoints, logs and predictions."""
    save_every: int | str = same_option(RunConfig, "save_every", default=EPOCH)
    keep: int = same_option(RunConfig, "keep", default=1)

    def __post_init__(self) -> None:
        task = self.described_task
        for name in non_defaults(self):
            if name in _OF_WRITING and not task.IS_GENERATED:
                raise UserError(
                    f"{flag_of(name)}: the task {task.name} generates no text and does not use it."
                )
        if self.min_answer > self._max_tokens and task.IS_GENERATED:
            raise UserError(
                f"--min-answer {self.min_answer} is more than {self._max_tokens}, which a text "
                "has at most: lower it, or raise --max-answer."
            )

    def prepared(self, *, world: int) -> Self:
        """Return the flags with the number of items per step filled in.

        Args:
            world: The number of ranks.
        """
        size = self.batch_size or batch_size_of(self.deepspeed or {}, self.micro_batch, world=world)
        return replace(self, batch_size=size or _BATCH_SIZE)

    @cached_property
    def described_task(self) -> Task:
        """The task that --task names."""
        return find_task(self.task)

    @property
    def prompt_options(self) -> PromptOptions:
        """The options for making examples from items."""
        return PromptOptions(**options_of(PromptOptions, vars(self)))

    @property
    def _max_tokens(self) -> int:
        """The maximum number of tokens of a text."""
        return self.max_answer or self.target_length or TARGET_LENGTH

    @property
    def decoding(self) -> Decoding:
        """The options for generating texts."""
        return Decoding(
            max_new_tokens=self._max_tokens,
            min_new_tokens=self.min_answer,
            beams=self.beams,
            no_repeat_ngram=self.no_repeat_ngram,
        )
