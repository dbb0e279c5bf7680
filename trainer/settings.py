"""How a run trains: every option but those that decide its samples, each written once.

`config.py` makes flags of the fields. Where a default is None, the DeepSpeed JSON or the model
says. No flag begins as one of the launchers' does: argparse would take it for theirs even behind
the script's name.
"""

import argparse
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shards.errors import UserError
from shards.flags import count
from trainer.deepspeed_json import AUTO, BF16, FP16, FP32
from trainer.schedule import CONSTANT, COSINE, LINEAR, Schedule

RESUME_AUTO, RESUME_NONE = "auto", "none"


def _flag(text: str, **argument: Any) -> dict[str, Any]:
    """Return a field's metadata: its meaning, and further arguments of add_argument."""
    return {"help": text, "flag": argument}


def _positive(text: str) -> int:
    if (value := count(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a run trains; `None` is what the DeepSpeed JSON or the model says."""

    model: str = field(
        metadata=_flag("Its shape: a name (tiny, glm-large, ...) or FILE.json.", metavar="NAME"),
    )
    init_from: Path | None = field(
        default=None,
        metadata=_flag(
            "Begin with these weights: a published checkpoint, or one of this trainer.",
            metavar="PATH",
            type=Path,
        ),
    )
    extend_positions: bool = field(
        default=False,
        metadata=_flag(
            "Let the model have more positions than --init-from, whose come first.",
            action="store_true",
        ),
    )
    blanks: tuple[str, ...] = field(
        default=(),
        metadata=_flag(
            "Options of blank infilling, as bert_prob=0.5 (trainer/blanks.py lists them).",
            metavar="NAME=VALUE",
            nargs="+",
            action="extend",
        ),
    )
    isolate_documents: bool = field(
        default=False,
        metadata=_flag("Documents in one window do not see each other.", action="store_true"),
    )
    dropout: float | None = field(
        default=None,
        metadata=_flag("All dropout probabilities. Default: the model's.", metavar="P", type=float),
    )
    deepspeed: str | None = field(
        default=None,
        metadata=_flag("DeepSpeed's JSON: a file, or the name of a preset.", metavar="FILE"),
    )
    precision: str | None = field(
        default=None,
        metadata=_flag(
            "What to compute in. Default: what the JSON says, else the best of the device.",
            choices=(AUTO, BF16, FP16, FP32),
        ),
    )
    micro_batch: int | None = field(
        default=None,
        metadata=_flag("Samples that a rank computes at a time.", metavar="N", type=_positive),
    )
    lr: float = field(default=1e-4, metadata=_flag("Peak learning rate.", metavar="LR", type=float))
    schedule: str = field(
        default=COSINE,
        metadata=_flag("How the rate falls.", choices=(COSINE, LINEAR, CONSTANT)),
    )
    warmup: float = field(
        default=0.05,
        metadata=_flag(
            "Steps of warm-up; below 1: share of the decay steps.", metavar="N", type=float
        ),
    )
    decay_steps: int | None = field(
        default=None,
        metadata=_flag(
            "The step from which on the rate stays. Default: the last.", metavar="N", type=_positive
        ),
    )
    lr_floor: float = field(
        default=0.1, metadata=_flag("The last rate as a share of --lr.", metavar="F", type=float)
    )
    betas: tuple[float, ...] = field(
        default=(0.9, 0.95), metadata=_flag("Of AdamW.", metavar="B", nargs=2, type=float)
    )
    eps: float = field(default=1e-8, metadata=_flag("Of AdamW.", metavar="EPS", type=float))
    weight_decay: float = field(
        default=0.1,
        metadata=_flag("Of all weights but biases and LayerNorms.", metavar="F", type=float),
    )
    max_tokens: int | None = field(
        default=None,
        metadata=_flag(
            "End after so many tokens (samples x --length) in place of --max-steps.",
            metavar="N",
            type=_positive,
        ),
    )
    save: Path | None = field(
        default=None,
        metadata=_flag(
            "Folder of checkpoints and logs; it may be on each node's own disk.",
            metavar="DIR",
            type=Path,
        ),
    )
    resume: str = field(
        default=RESUME_AUTO,
        metadata=_flag(
            "auto: from the newest whole checkpoint in --save, if there is any; none: --save must "
            "hold none; DIR: from a run's folder or one of its checkpoints.",
            metavar="WHAT",
        ),
    )
    save_every: int = field(
        default=1000, metadata=_flag("Steps between checkpoints.", metavar="N", type=_positive)
    )
    keep: int = field(
        default=3, metadata=_flag("Checkpoints to keep.", metavar="N", type=_positive)
    )
    eval_every: int = field(
        default=1000, metadata=_flag("Steps between validations; 0: none.", metavar="N", type=count)
    )
    log_every: int = field(
        default=10, metadata=_flag("Steps between lines of the log.", metavar="N", type=_positive)
    )
    max_bad_losses: int = field(
        default=10,
        metadata=_flag(
            "Give up after so many NaN or infinite losses in a row.", metavar="N", type=_positive
        ),
    )
    checkpoint_activations: bool = field(
        default=False,
        metadata=_flag(
            "Recompute layers in the backward pass to save memory.", action="store_true"
        ),
    )
    compile: bool = field(
        default=False, metadata=_flag("Compile the model with torch.compile.", action="store_true")
    )
    profile: bool = field(
        default=False,
        metadata=_flag("Write a trace of steps 6 to 8 of this start.", action="store_true"),
    )

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
        if self.extend_positions and self.init_from is None:
            raise UserError("--extend-positions says how to read --init-from PATH: give both.")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise UserError(f"--betas {self.betas}: two numbers from 0 to below 1.")
        if self.eps <= 0 or self.weight_decay < 0:
            raise UserError(
                f"--eps {self.eps} is above 0, --weight-decay {self.weight_decay} not below."
            )
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise UserError(f"--dropout {self.dropout}: a probability below 1.")
