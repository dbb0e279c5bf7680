"""The command `python -m trainer.evaluate`: a checkpoint of a run is evaluated, or a model.

    python -m trainer.evaluate --resume RUN, with the flags of the run

prints the loss and token accuracy of the newest checkpoint: in total, by objective, by source; and
what its --eval-task give.
The same of a model alone, whose checkpoint says all that, and of tasks:

    python -m trainer.evaluate MODEL [--data DIR] [--task NAME=FILE]
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from shards.command import run_command
from shards.errors import UserError
from shards.flags import WORD, count, flag_of, given, local_path, option, positive
from shards.interrupt import ended_by_interrupt
from trainer.command import RankCommand
from trainer.config import Config, config_of
from trainer.opening import OPENED, Opening
from trainer.settings import Settings
from trainer.task_files import BATCH_TOKENS, GMASK, MASK, parse_tasks

if TYPE_CHECKING:
    from trainer.ranks import Ranks

_OF_RUNS = ("--resume", "--save", "--init-from")
"""Flags of which a run's command line has one: they say where its weights are."""
_ASKED = "what is asked, and how"
_OF_TASKS = ("length", "blank", "tokenizer")


def main(module: str, words: Sequence[str]) -> int:
    """Evaluate what a command line names and return the exit code."""
    flags = {word.partition("=")[0] for word in words}
    command = EvaluateModel if flags.isdisjoint(_OF_RUNS) else EvaluateRun
    return run_command(command, words, program=f"python -m {module}")


@dataclass(frozen=True, kw_only=True)
class EvaluateRun(Settings):
    """Evaluate a checkpoint of a run."""

    PROGRAM = "trainer.evaluate"

    def prepared(self, *, world: int) -> Config:
        """Return the run."""
        return config_of(self, world=world)

    def work(self, asked: Config, ranks: "Ranks") -> int:
        """Print the figures."""
        with ended_by_interrupt():
            from trainer.evaluate.validation import evaluate_checkpoint  # noqa: PLC0415  loads torch
        return evaluate_checkpoint(asked, ranks)


@dataclass(frozen=True, kw_only=True)
class EvaluateModel(Opening, RankCommand):
    """Evaluate a trained model."""

    PROGRAM = "trainer.evaluate"
    USAGE = "%(prog)s MODEL [--data DIR] [--task NAME=FILE] [FLAG ...]"
    EPILOG = "Held-out loss: python -m trainer.evaluate --resume RUN, with the flags of the run."
    GROUPS = (_ASKED, OPENED)

    path: Path = option(
        MISSING,
        "a run's folder, one of its checkpoints, or a published checkpoint",
        flag=WORD,
        metavar="MODEL",
        type=local_path,
        group=_ASKED,
    )
    task: tuple[str, ...] = option(
        (),
        "A task of lm-evaluation-harness (hellaswag, arc_easy, copa, lambada, wikitext, …), or "
        "choices or language_model, and the JSON lines of its items; may be repeated.",
        metavar="NAME=FILE",
        action="append",
    )
    data: tuple[str, ...] = option(
        (),
        "Held-out loss on the validation documents of these data (a folder, or "
        "hf:OWNER/NAME[@REVISION]); may be repeated. Default without --task: those of the model's "
        "run.",
        metavar="DIR",
        action="append",
    )
    eval_samples: int = option(
        1024,
        "Held-out loss: windows that are read, the same as in training; 0: all.",
        type=count,
    )
    length: int | None = option(
        None,
        "Tokens of a row at most. Default: the model's positions.",
        type=positive,
    )
    blank: str | None = option(
        None,
        "What a glm fills: [gMASK], or [MASK]. Default: gmask, but mask for a run without task "
        "masks.",
        choices=(GMASK, MASK),
    )
    batch_tokens: int = option(
        BATCH_TOKENS, "Tokens that a device computes at once.", type=positive, metavar="N"
    )

    @cached_property
    def files(self) -> Mapping[str, Path]:
        """The files of tasks, by name."""
        return parse_tasks("--task", self.task)

    def __post_init__(self) -> None:
        files = self.files
        for name in given(self):
            if name in _OF_TASKS and not files:
                raise UserError(f"{flag_of(name)} is of tasks: give --task NAME=FILE with it.")
            if name == "eval_samples" and files and not self.data:
                raise UserError("--eval-samples is of held-out loss: give --data DIR with it.")

    def prepared(self, *, world: int) -> Self:  # noqa: ARG002
        """Return what is asked."""
        return self

    def work(self, asked: "EvaluateModel", ranks: "Ranks") -> int:
        """Print the figures."""
        with ended_by_interrupt():
            from trainer.evaluate.validation import evaluate_model  # noqa: PLC0415  as above
        return evaluate_model(asked, ranks)
