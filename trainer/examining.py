"""What is asked of a trained model: the flags of `trainer.evaluate`."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shards.command import Parser, add_flags
from shards.errors import UserError
from shards.flags import count, flag_of, given, local_path, option, options_of, positive
from trainer.foreign_flags import FOREIGN_FLAGS
from trainer.opening import Opening
from trainer.tasks_asked import BATCH_TOKENS, GMASK, MASK, Asking, parse_tasks

OF_RUNS = ("--resume", "--save", "--init-from")
"""Flags of which a run's command line has one: they say where its weights are."""


@dataclass(frozen=True, kw_only=True)
class Examining:
    """How a model is examined; the command's flags beside those of `Opening`."""

    task: tuple[str, ...] = option(
        (),
        "A task of lm-evaluation-harness (hellaswag, arc_easy, copa, lambada, wikitext, …), or "
        "choices or language_model, and the JSON lines of its items; may be repeated.",
        metavar="NAME=FILE",
        action="append",
    )
    data: tuple[str, ...] = option(
        (),
        "Held-out loss on the validation documents of these data; may be repeated. Default "
        "without --task: those of the model's run.",
        metavar="DIR",
        action="append",
    )
    eval_samples: int = option(
        1024,
        "Held-out loss: windows that are read, the same as in training; 0: all.",
        type=count,
        metavar="N",
    )
    length: int | None = option(
        None,
        "Tokens of a row at most. Default: the model's positions.",
        type=positive,
        metavar="N",
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


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What the command line asks for."""

    path: Path
    files: Mapping[str, Path]
    """Of tasks, by name."""
    examining: Examining
    opening: Opening

    @property
    def asking(self) -> Asking:
        """How benchmarks are asked."""
        return Asking(length=self.examining.length, blank=self.examining.blank)

    def __post_init__(self) -> None:
        of_tasks = ("length", "blank", "tokenizer")
        for name in (*given(self.examining), *given(self.opening)):
            if name in of_tasks and not self.files:
                raise UserError(f"{flag_of(name)} is of tasks: give --task NAME=FILE with it.")
            if name == "eval_samples" and self.files and not self.examining.data:
                raise UserError("--eval-samples is of held-out loss: give --data DIR with it.")


def parse_examination(
    argv: Sequence[str],
    *,
    world: int,  # noqa: ARG001 - as `command.Reader` has it
) -> Examination:
    """Return what a command line asks for.

    Raises:
        UserError: it is not understood, or a file is not there.
    """
    parser = Parser(
        prog="python -m trainer.evaluate",
        usage="%(prog)s MODEL [--data DIR] [--task NAME=FILE] [FLAG ...]",
        old=FOREIGN_FLAGS,
        description="Evaluate a trained model.",
        epilog="Held-out loss: python -m trainer.evaluate --resume RUN, with the flags of the run.",
    )
    parser.add_argument(
        "path",
        type=local_path,
        metavar="MODEL",
        help="a run's folder, one of its checkpoints, or a published checkpoint",
    )
    add_flags(parser, Examining, group="what is asked, and how")
    add_flags(parser, Opening, group="how the model is opened")
    # DeepSpeed's launcher gives it to every process; the environment says the same.
    parser.add_argument("--local_rank", "--local-rank", help=argparse.SUPPRESS)
    parser.refuse(parser.unknown_flags(argv), others=OF_RUNS)
    values = {
        name: value for name, value in vars(parser.parse_args(argv)).items() if value is not None
    }
    examining = Examining(**options_of(Examining, values))
    return Examination(
        path=values["path"],
        files=parse_tasks("--task", examining.task),
        examining=examining,
        opening=Opening(**options_of(Opening, values)),
    )
