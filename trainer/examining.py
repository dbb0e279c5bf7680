"""What is asked of a trained model: the flags of `trainer.evaluate MODEL`."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from shards.errors import UserError
from shards.flags import WORD, count, flag_of, given, local_path, option, positive
from trainer.command import RankCommand, part_of
from trainer.opening import OPENED, Opening
from trainer.tasks_asked import BATCH_TOKENS, GMASK, MASK, Asking, parse_tasks

OF_RUNS = ("--resume", "--save", "--init-from")
"""Flags of which a run's command line has one: they say where its weights are."""
ASKED = "what is asked, and how"
_OF_TASKS = ("length", "blank", "tokenizer")


@dataclass(frozen=True, kw_only=True)
class Examination(Opening, RankCommand):
    """Evaluate a trained model."""

    PROGRAM = "trainer.evaluate"
    USAGE = "%(prog)s MODEL [--data DIR] [--task NAME=FILE] [FLAG ...]"
    EPILOG = "Held-out loss: python -m trainer.evaluate --resume RUN, with the flags of the run."
    GROUPS = (ASKED, OPENED)

    path: Path = option(
        MISSING,
        "a run's folder, one of its checkpoints, or a published checkpoint",
        flag=WORD,
        metavar="MODEL",
        type=local_path,
        group=ASKED,
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

    @classmethod
    def read(cls, words: Sequence[str], program: str) -> Self:
        """Return what a command line asks for."""
        parser = cls.parser(program)
        parser.refuse(parser.unknown_flags(words), others=OF_RUNS)
        return super().read(words, program)

    @cached_property
    def files(self) -> Mapping[str, Path]:
        """The files of tasks, by name."""
        return parse_tasks("--task", self.task)

    @property
    def asking(self) -> Asking:
        """How benchmarks are asked."""
        return part_of(self, Asking)

    @property
    def opening(self) -> Opening:
        """How the model is opened."""
        return part_of(self, Opening)

    def __post_init__(self) -> None:
        for name in given(self):
            if name in _OF_TASKS and not self.files:
                raise UserError(f"{flag_of(name)} is of tasks: give --task NAME=FILE with it.")
            if name == "eval_samples" and self.files and not self.data:
                raise UserError("--eval-samples is of held-out loss: give --data DIR with it.")
