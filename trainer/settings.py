"""How a run trains: every option except those that decide its samples.

`config.py` makes flags of the fields. A default of None leaves the value to the DeepSpeed JSON or
the model. No flag is a prefix of a launcher's flags: argparse would take it for theirs even after
the name of the script.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass
from pathlib import Path

from shards.errors import UserError
from shards.flags import count, local_path, option, positive, positives
from shards.run_flags import BATCH, DATA, END
from shards.switches import UNSEEN, parse_weight
from trainer.deepspeed_json import AUTO, BF16, FP16, FP32
from trainer.schedule import CONSTANT, COSINE, LINEAR, Schedule

MODEL = "the model"
OPTIMIZER = "learning rate and optimizer"
CHECKPOINTS = "checkpoints"
VALIDATION = "validation, tasks and samples"
LOG = "log, and what goes wrong"
"""Titles in `--help`, beside those of the flags of a run: DATA, END, BATCH."""
EPOCH = "epoch"
"""What `save_every` and `eval_every` may be instead of steps."""
RESUME_AUTO, RESUME_NONE = "auto", "none"
REPEAT, WAIT = "repeat", "wait"


def _or_epoch(number: Callable[[str], int]) -> Callable[[str], int | str]:
    """Return a function from a flag's text to steps, or EPOCH."""

    def read(text: str) -> int | str:
        return text if text == EPOCH else number(text)

    return read


def _times(text: str) -> float:
    """Return a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, as in 1 or 0.5")
    return value


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a run trains; `None` leaves the value to the DeepSpeed JSON or the model."""

    model: str = option(
        MISSING,
        "Its shape: a name (tiny, glm-large, ...) or FILE.json.",
        metavar="NAME",
        group=MODEL,
    )
    init_from: Path | None = option(
        None,
        "Start from these weights: a published checkpoint, or one of this trainer.",
        metavar="PATH",
        type=local_path,
    )
    extend_positions: bool = option(
        False,
        "Give the model more positions than --init-from has; those come first.",
        action="store_true",
    )
    blanks: tuple[str, ...] = option(
        (),
        "Options of blank infilling, as bert_prob=0.5 (trainer/blanks/blanks.py lists them).",
        metavar="NAME=VALUE",
        nargs="+",
        action="extend",
        group=DATA,
    )
    isolate_documents: bool = option(
        False, "Documents in one window do not see each other.", action="store_true"
    )
    dropout: float | None = option(
        None,
        "All dropout probabilities. Default: the model's.",
        metavar="P",
        type=float,
        group=MODEL,
    )
    deepspeed: str | None = option(
        None, "DeepSpeed's JSON: a file, or the name of a preset.", metavar="FILE", group=BATCH
    )
    precision: str | None = option(
        None,
        "Precision of the computation. Default: what the JSON says, else the best of the device.",
        choices=(AUTO, BF16, FP16, FP32),
    )
    micro_batch: tuple[int, ...] | None = option(
        None,
        "Samples that a rank computes at once. N,N,...: those of each node, in the order of the "
        "launcher; the loss is the same.",
        metavar="N",
        type=positives,
    )
    lr: float = option(1e-4, "Peak learning rate.", metavar="LR", type=float, group=OPTIMIZER)
    schedule: str = option(
        COSINE, "How the learning rate decays.", choices=(COSINE, LINEAR, CONSTANT)
    )
    warmup: float = option(
        0.05, "Steps of warm-up; below 1: share of the decay steps.", metavar="N", type=float
    )
    decay_steps: int | None = option(
        None,
        "The step from which the rate is constant. Default: the last.",
        metavar="N",
        type=positive,
    )
    lr_floor: float = option(0.1, "The last rate as a share of --lr.", metavar="F", type=float)
    betas: tuple[float, ...] = option((0.9, 0.95), "Of AdamW.", metavar="B", nargs=2, type=float)
    eps: float = option(1e-8, "Of AdamW.", metavar="EPS", type=float)
    weight_decay: float = option(
        0.1, "Of all weights but biases and LayerNorms.", metavar="F", type=float
    )
    follow: bool = option(
        False,
        "After each checkpoint, take newer manifests of the data, as a growing dataset has them.",
        action="store_true",
        group=DATA,
    )
    follow_weight: str = option(
        UNSEEN,
        "Between old and new text. unseen: all windows are seen once before any is repeated; a "
        "number: how much a window of the last switch weighs beside an older one.",
        metavar="W",
    )
    at_end: str = option(
        REPEAT,
        "When all text has been seen: repeat it, or wait for a newer manifest (with --follow).",
        choices=(REPEAT, WAIT),
    )
    max_tokens: int | None = option(
        None,
        "End after this many tokens (samples x --length) instead of --max-steps.",
        metavar="N",
        type=positive,
        group=END,
    )
    epochs: float | None = option(
        None,
        "End once as many samples were taken as there are windows in the data, so many times. "
        "Default: 1, without --max-steps and --max-tokens.",
        metavar="N",
        type=_times,
    )
    save: Path | None = option(
        None,
        "Folder of checkpoints and logs; it may be on each node's own disk.",
        metavar="DIR",
        type=local_path,
        group=CHECKPOINTS,
    )
    resume: str = option(
        RESUME_AUTO,
        "auto: from the newest whole checkpoint in --save, if there is any; none: --save must "
        "hold none; DIR: from a run's folder or one of its checkpoints.",
        metavar="WHAT",
    )
    save_every: int | str = option(
        1000,
        "Steps between checkpoints; epoch: one at the end of each.",
        metavar="N",
        type=_or_epoch(positive),
    )
    keep: int = option(3, "Checkpoints to keep.", metavar="N", type=positive)
    eval_every: int | str = option(
        1000,
        "Steps between validations; 0: none; epoch: one at the end of each.",
        metavar="N",
        type=_or_epoch(count),
        group=VALIDATION,
    )
    eval_samples: int = option(
        1024,
        "Windows of a validation, the same each time, spread over all there are; 0: all.",
        metavar="N",
        type=count,
    )
    eval_task: tuple[str, ...] = option(
        (),
        "At every --eval-every also ask a task of a file, as hellaswag=FILE; may be repeated "
        "(docs/using.md has the tasks).",
        metavar="NAME=FILE",
        action="append",
    )
    tokenizer: str | None = option(
        None,
        "The tokenizer of the data, for --eval-task and --sample-every: sentencepiece:FILE, "
        "tiktoken:NAME, hf:FILE. Default: the one that the data hold.",
        metavar="SPEC",
    )
    sample_every: int = option(
        0,
        "Steps between texts that the model makes of --sample-prompts; 0: none.",
        metavar="N",
        type=count,
    )
    sample_prompts: Path | None = option(
        None,
        "A file of prompts, as of trainer.generate; the first rank reads it.",
        metavar="FILE",
        type=local_path,
    )
    sample_tokens: int = option(
        64, "The most tokens of a blank of a sample.", metavar="N", type=positive
    )
    log_every: int = option(
        10, "Steps between lines of the log.", metavar="N", type=positive, group=LOG
    )
    max_bad_losses: int = option(
        10, "Give up after this many NaN or infinite losses in a row.", metavar="N", type=positive
    )
    checkpoint_activations: bool = option(
        False,
        "Recompute layers in the backward pass to save memory.",
        action="store_true",
        group=BATCH,
    )
    compile: bool = option(False, "Compile the layers with torch.compile.", action="store_true")
    profile: bool = option(
        False, "Write a trace of steps 6 to 8 of this start.", action="store_true", group=LOG
    )

    @property
    def counts_epochs(self) -> bool:
        """Whether the size of an epoch decides something."""
        return self.epochs is not None or EPOCH in (self.save_every, self.eval_every)

    def schedule_of(self, steps: int) -> Schedule:
        """Return the learning rate of a run of so many steps."""
        decay = self.decay_steps or steps
        warmup = self.warmup * decay if self.warmup < 1 else self.warmup
        if not 0 <= warmup < math.inf:
            raise UserError(f"--warmup {self.warmup}: steps, or a share of the decay steps.")
        return Schedule(
            peak=self.lr,
            shape=self.schedule,
            warmup=round(warmup),
            decay=decay,
            floor=self.lr_floor,
        )

    def __post_init__(self) -> None:
        self._check_intervals()
        if self.at_end == WAIT and not self.follow:
            raise UserError("--at-end wait waits for a newer manifest: give --follow with it.")
        try:
            parse_weight(self.follow_weight)
        except ValueError:
            raise UserError(
                f"--follow-weight {self.follow_weight}: give {UNSEEN}, or a number above 0."
            ) from None
        if self.extend_positions and self.init_from is None:
            raise UserError("--extend-positions says how to read --init-from PATH: give both.")
        self._check_optimizer()
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise UserError(f"--dropout {self.dropout}: a probability below 1.")

    def _check_optimizer(self) -> None:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise UserError(f"--betas {self.betas}: two numbers from 0 to below 1.")
        if not 0 < self.eps < math.inf:
            raise UserError(f"--eps {self.eps}: a number above 0.")
        if not 0 <= self.weight_decay < math.inf:
            raise UserError(f"--weight-decay {self.weight_decay}: a number from 0 on.")

    def _check_intervals(self) -> None:
        if self.eval_task and not self.eval_every:
            raise UserError("--eval-task is asked at every --eval-every, which is 0: give steps.")
        if (self.sample_every > 0) is (self.sample_prompts is None):
            raise UserError(
                "--sample-every N says when and --sample-prompts FILE says of what samples are "
                "written: give both."
            )
