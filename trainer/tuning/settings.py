"""How a run of fine-tuning learns: the flags of `trainer.finetune`.

The defaults are those of THUDM/GLM (commit 4f61ed7, scripts/finetune_superglue.sh).
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from shards.command import Parser, add_flags
from shards.errors import UserError
from shards.flags import (
    count,
    flag_of,
    given,
    local_path,
    option,
    options_of,
    positive,
    same_option,
)
from shards.run_flags import BATCH
from trainer.config import with_recipe
from trainer.decode.decoding import Decoding
from trainer.deepspeed_json import (
    FINETUNE,
    adam_of,
    batch_size_of,
    presets,
    read_json,
)
from trainer.foreign_flags import FOREIGN_FLAGS
from trainer.schedule import LINEAR
from trainer.settings import CHECKPOINTS, LOG, OPTIMIZER, RESUME_AUTO, Settings
from trainer.tasks.catalogue import TASKS, find_task
from trainer.tasks.task import TARGET_LENGTH, Asking, Task
from trainer.tuning.kinds import CROSS_ENTROPY, LOSSES

ITEMS, ASKED = "the task and the model", "how items are asked"
LEARNING, WRITING = "how it learns", "how texts are written"
"""Titles in `--help`, beside those of trainer.train."""
_OF_WRITING = ("beams", "beam_penalty", "no_repeat_ngram", "min_answer", "max_answer", "by_loss")
"""What says how texts are written."""
_SEEDS = 2**63
"""More than any seed that torch takes for every epoch."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How a run learns a task."""

    task: str = option(
        MISSING, "A task's name, or FILE.json of one's own.", metavar="NAME", group=ITEMS
    )
    data: Path = option(
        MISSING,
        "Folder of train.jsonl, val.jsonl and test.jsonl; the first must be there.",
        metavar="FOLDER",
        type=local_path,
    )
    init_from: Path = option(
        MISSING,
        "The trained model: a run of trainer.train, one of its checkpoints, or a published one.",
        metavar="PATH",
        type=local_path,
    )
    model: str | None = option(
        None, "The shape of a published checkpoint, as of trainer.train.", metavar="NAME"
    )
    tokenizer: str | None = option(
        None,
        "The tokenizer of the model (sentencepiece:FILE, tiktoken:NAME, hf:FILE). Default: the one "
        "that its data hold.",
        metavar="SPEC",
    )
    epochs: int = option(
        50, "How often each item is learnt.", metavar="N", type=positive, group=LEARNING
    )
    batch_size: int = option(
        16, "Items of a step, on all ranks together.", metavar="B", type=positive
    )
    across_epochs: bool = option(
        False,
        "The next epoch fills an epoch's last batch up. Default: that batch is short.",
        action="store_true",
    )
    loss: str = option(
        CROSS_ENTROPY,
        "Of questions with choices (docs/finetuning.md).",
        choices=LOSSES,
        group=LEARNING,
    )
    length_penalty: float = option(
        0.0,
        "Divide a choice's score by (its tokens)^P; 0: do not.",
        metavar="P",
        type=float,
    )
    label_smoothing: float = option(
        0.0,
        "Of texts: the share of each target that is spread over the vocabulary.",
        metavar="E",
        type=float,
    )
    beams: int = same_option(Decoding, "beams", group=WRITING)
    beam_penalty: float = option(
        0.0,
        "Divide what a beam is worth by (its tokens)^P: 0 prefers short texts.",
        metavar="P",
        type=float,
    )
    no_repeat_ngram: int = same_option(Decoding, "no_repeat_ngram")
    min_answer: int = option(0, "The fewest tokens of a text.", metavar="N", type=count)
    max_answer: int | None = option(
        None,
        "The most tokens of a text. Default: --target-length, the task's.",
        metavar="N",
        type=positive,
    )
    by_loss: bool = option(
        False,
        "Of texts: the loss on val.jsonl picks the best epoch; nothing is written for it, only for "
        "test.jsonl.",
        action="store_true",
    )
    dropout: float = option(
        0.1, "All dropout probabilities.", metavar="P", type=float, group=LEARNING
    )
    seed: int = option(1234, "Of the order and of dropout.", metavar="S", type=count)
    deepspeed: str | None = same_option(Settings, "deepspeed", group=BATCH)
    precision: str | None = same_option(Settings, "precision")
    micro_batch: int | None = option(
        None, "Samples that a rank computes at once.", metavar="N", type=positive, group=BATCH
    )
    lr: float = same_option(Settings, "lr", default=1e-5, group=OPTIMIZER)
    schedule: str = same_option(Settings, "schedule", default=LINEAR)
    warmup: float = same_option(Settings, "warmup", default=0.1)
    lr_floor: float = same_option(Settings, "lr_floor")
    betas: tuple[float, ...] = same_option(Settings, "betas", default=(0.9, 0.999))
    eps: float = same_option(Settings, "eps")
    weight_decay: float = same_option(Settings, "weight_decay")
    save: Path = option(
        MISSING,
        "Folder of checkpoints, log and predictions.",
        metavar="DIR",
        type=local_path,
        group=CHECKPOINTS,
    )
    resume: str = option(
        RESUME_AUTO,
        "auto: from the newest whole checkpoint in --save, if there is any; none: --save must "
        "hold none.",
        metavar="WHAT",
    )
    save_every: int | None = option(
        None, "Steps between checkpoints. Default: an epoch.", metavar="N", type=positive
    )
    keep: int = option(1, "Checkpoints to keep, besides the best one.", metavar="N", type=positive)
    log_every: int = same_option(Settings, "log_every", group=LOG)
    max_bad_losses: int = same_option(Settings, "max_bad_losses")
    checkpoint_activations: bool = same_option(Settings, "checkpoint_activations", group=BATCH)

    def __post_init__(self) -> None:
        for name, low, high in (("label_smoothing", 0, 1), ("dropout", 0, 1)):
            if not low <= getattr(self, name) < high:
                raise UserError(
                    f"{flag_of(name)} {getattr(self, name)}: from {low} to below {high}."
                )
        if not 0 <= self.length_penalty < math.inf:
            raise UserError(f"--length-penalty {self.length_penalty}: a number from 0 on.")
        if not math.isfinite(self.beam_penalty):
            raise UserError(f"--beam-penalty {self.beam_penalty}: a number.")
        if self.beam_penalty and self.beams == 1:
            raise UserError("--beam-penalty compares beams: give --beams N with it.")
        if self.seed >= _SEEDS:
            raise UserError(f"--seed {self.seed}: a whole number below {_SEEDS}.")
        self.settings()  # which checks what the two have in common

    def settings(self) -> Settings:
        """Return what trainer.train calls these settings."""
        shared = {field.name for field in fields(Settings)} & {field.name for field in fields(self)}
        values = {name: getattr(self, name) for name in shared - {"micro_batch"}}
        return Settings(**{**values, "model": self.model or "", "save_every": self.save_every or 1})


@dataclass(frozen=True, kw_only=True)
class Config:
    """A run of fine-tuning as the command line describes it."""

    tuning: Tuning
    asking: Asking
    task: Task
    deepspeed: Mapping[str, Any]
    """DeepSpeed's settings as they were given, checked."""

    def __post_init__(self) -> None:
        for name in given(self.tuning):
            if name in _OF_WRITING and not self.task.is_written:
                raise UserError(
                    f"{flag_of(name)}: the task {self.task.name} writes no texts, and has no use "
                    "for it."
                )
        fewest, most = self.tuning.min_answer, self._most
        if fewest > most and self.task.is_written:
            raise UserError(
                f"--min-answer {fewest} is more than {most}, the most tokens of a text: lower it, "
                "or raise --max-answer."
            )

    @property
    def _most(self) -> int:
        """The most tokens of a text."""
        own = self.asking.target_length or TARGET_LENGTH
        return self.tuning.max_answer or own

    @property
    def decoding(self) -> Decoding:
        """How texts are written."""
        return Decoding(
            max_new_tokens=self._most,
            min_new_tokens=self.tuning.min_answer,
            beams=self.tuning.beams,
            length_penalty=self.tuning.beam_penalty,
            no_repeat_ngram=self.tuning.no_repeat_ngram,
        )


def parse(argv: Sequence[str], *, world: int) -> Config:
    """Return the run that a command line describes.

    Args:
        argv: the command line.
        world: the number of ranks.

    Raises:
        UserError: a flag is unknown or missing, or a value is invalid.
    """
    values = vars(_parser().parse_args(with_recipe(argv, folder=FINETUNE)))
    for field in fields(Tuning):
        if field.default is MISSING and field.name not in values:
            shown = f"{flag_of(field.name)} {field.metadata['flag']['metavar']}"
            raise UserError(f"{shown} is missing: {field.metadata['help']}{_known(field.name)}")
    content = read_json(values["deepspeed"]) if "deepspeed" in values else {}
    values = {**adam_of(content), **values}
    size = batch_size_of(content, values.get("micro_batch"), world=world)
    if size is not None:
        values.setdefault("batch_size", size)
    return Config(
        tuning=Tuning(**options_of(Tuning, values)),
        asking=Asking(**options_of(Asking, values)),
        task=find_task(values["task"]),
        deepspeed=content,
    )


def _known(name: str) -> str:
    return f" Known are {', '.join(TASKS)}." if name == "task" else ""


def _parser() -> Parser:
    parser = Parser(
        prog="python -m trainer.finetune",
        usage="%(prog)s --task NAME --data FOLDER --init-from PATH --save DIR [FLAG ...]",
        old=FOREIGN_FLAGS,
        description="Trains a model on a task.",
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument(
        "--recipe",
        metavar="NAME",
        help=f"flags of a file: {', '.join(presets('args', folder=FINETUNE))}",
    )
    for title in (ITEMS, ASKED, LEARNING, WRITING):  # in this order, whichever flag comes first
        parser.group(title)
    add_flags(parser, Tuning)
    add_flags(parser, Asking, group=ASKED)
    # DeepSpeed's launcher gives it to every process; the environment says the same.
    parser.add_argument("--local_rank", "--local-rank", help=argparse.SUPPRESS)
    return parser
