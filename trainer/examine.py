"""Exams of a trained model, and of one in training.

    python -m trainer.evaluate MODEL --task hellaswag=FILE    a run, a checkpoint, a published one
    python -m trainer.train … --eval-task hellaswag=FILE      at every --eval-every

Under a launcher each rank answers its share; the figures are the same on any number of ranks.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from shards.command import Parser
from shards.errors import UserError
from shards.flags import (
    add_flags,
    count,
    flag_of,
    given,
    local_path,
    option,
    options_of,
    positive,
)
from shards.run import CAUSAL
from shards.shown import print_line
from trainer.log import TASK_FIGURES
from trainer.model.loss import LossSums
from trainer.model.model import GLM
from trainer.old_spellings import USE
from trainer.ranks import Ranks
from trainer.start import StartedRun
from trainer.tasks.exam import BATCH_TOKENS, Ask, Exam, sit
from trainer.tasks.exams import NAMES, TEXTS, open_exams, parse_exams
from trainer.tasks.phrasing import Phrasing
from trainer.tasks.rows import placed
from trainer.tokenizer import TextTokenizer
from trainer.trained import Opening, Origin, find_tokenizer, origin_of

MASK, GMASK = "mask", "gmask"


@dataclass(frozen=True, kw_only=True)
class Examining:
    """How exams are asked; the command's flags beside those of `Opening`."""

    task: tuple[str, ...] = option(
        (),
        f"A task and its file; may be repeated. The tasks: {', '.join(NAMES)}.",
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
    stride: int | None = option(
        None,
        "Perplexity: tokens from one window to the next. Default: 32 for a glm, as its published "
        "figures; the window's length for a causal model, as lm-evaluation-harness.",
        type=positive,
        metavar="N",
    )
    unidirectional: bool = option(
        False, "A glm sees the first token, and reads the rest left to right.", action="store_true"
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

    def phrasing(self, tokenizer: TextTokenizer, origin: Origin) -> Phrasing:
        """Return how a model is asked.

        Raises:
            UserError: it cannot be asked so.
        """
        is_causal, positions = origin.objective == CAUSAL, origin.shape.max_positions
        # A run without task masks has seen no other blank.
        blank = self.blank or (GMASK if origin.task_mask else MASK)
        if self.length is not None and self.length > positions:
            raise UserError(
                f"--length {self.length:,}: the model has {positions:,} positions; give as many or "
                "fewer."
            )
        if self.blank is not None and is_causal:
            raise UserError("--blank is for a glm; this model is causal and fills none.")
        if self.unidirectional and is_causal:
            raise UserError(
                "--unidirectional is for a glm; this model is causal and reads so anyway."
            )
        return Phrasing(
            tokenizer=tokenizer,
            is_causal=is_causal,
            length=self.length or positions,
            mask=None if is_causal else tokenizer.special[blank],
            unidirectional=self.unidirectional,
        )


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What the command line asks for."""

    path: Path
    files: Mapping[str, Path]
    """Of tasks, by name."""
    examining: Examining
    opening: Opening

    def __post_init__(self) -> None:
        of_tasks = ("length", "stride", "unidirectional", "blank", "tokenizer")
        for name in (*given(self.examining), *given(self.opening)):
            if name in of_tasks and not self.files:
                raise UserError(f"{flag_of(name)} is of tasks: give --task NAME=FILE with it.")
            if name == "eval_samples" and self.files and not self.examining.data:
                raise UserError("--eval-samples is of held-out loss: give --data DIR with it.")
            if name == "stride" and not {*TEXTS} & {*self.files}:
                raise UserError(
                    f"--stride is of perplexity, which {', '.join(self.files)} does not ask for: "
                    f"give it with {' or '.join(TEXTS)}."
                )


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
        old=USE,
        description="Evaluate a trained model.",
        epilog="Held-out loss: python -m trainer.evaluate --resume RUN, with the flags of the run.",
    )
    parser.add_argument(
        "path",
        type=local_path,
        metavar="MODEL",
        help="a run's folder, one of its checkpoints, or a published checkpoint",
    )
    add_flags(parser, Examining)
    add_flags(parser, Opening)
    parser.add_argument("--local_rank", "--local-rank", help="as DeepSpeed's launcher gives it")
    values = {
        name: value for name, value in vars(parser.parse_args(argv)).items() if value is not None
    }
    examining = Examining(**options_of(Examining, values))
    return Examination(
        path=values["path"],
        files=parse_exams("--task", examining.task),
        examining=examining,
        opening=Opening(**options_of(Opening, values)),
    )


def answers_of(model: GLM) -> Ask:
    """Return what a model makes of batches, where it is."""
    device = model.word_embeddings.weight.device

    def answer(batch: dict[str, Tensor]) -> LossSums:
        with torch.no_grad():
            return model.loss_sum(placed(batch, device))

    return answer


def examine(
    answer: Ask, exams: Mapping[str, Exam], ranks: Ranks, *, batch_tokens: int = BATCH_TOKENS
) -> None:
    """Print what a model's answers are worth; all ranks call this."""
    for name, exam in exams.items():
        figures = sit(exam, answer, ranks=ranks, batch_tokens=batch_tokens)
        assert figures is not None  # nothing stops it
        if ranks.is_first:
            for line in _lines(name, exam, figures):
                print_line(line)


def exams_asked(asked: Examination, origin: Origin) -> dict[str, Exam]:
    """Return the exams that a command line asks for, by name.

    Raises:
        UserError: a file, or the tokenizer of the model, cannot be used.
    """
    if not asked.files:
        return {}
    phrasing = asked.examining.phrasing(find_tokenizer(origin, asked.opening), origin)
    return open_exams(asked.files, phrasing, stride=asked.examining.stride)


def _lines(name: str, exam: Exam, figures: Mapping[str, float]) -> list[str]:
    """Return the figures of an exam for a person, accuracies with their standard error."""
    counts = ", ".join(f"{count:,} {what}" for what, count in exam.counts.items() if count)
    items = exam.counts.get("items", 0)

    def error(figure: str, value: float) -> str:
        if not figure.startswith("acc") or items <= 1:
            return ""
        return f" ± {math.sqrt(value * (1 - value) / (items - 1)):.4f}"

    return [
        f"{name}: {counts}",
        *(f"{value:12.4f}  {figure}{error(figure, value)}" for figure, value in figures.items()),
    ]


def exams_of(started: StartedRun) -> dict[str, Exam]:
    """Return the exams of a run in training, by name.

    Raises:
        UserError: a file, or the tokenizer of the data, cannot be used.
    """
    settings = started.config.settings
    files = parse_exams("--eval-task", settings.eval_task)
    if not files:
        return {}
    origin = origin_of(started)
    tokenizer = find_tokenizer(origin, Opening(tokenizer=settings.tokenizer))
    return open_exams(files, Examining().phrasing(tokenizer, origin))


def told(figures: Mapping[str, float]) -> str:
    """Return the main figures of exams, FIGURE/NAME, for the line of a step."""
    names = dict.fromkeys(name.partition("/")[2] for name in figures)
    shown = [
        " ".join(
            [
                name,
                *(
                    f"{figure} {figures[f'{figure}/{name}']:.4g}"
                    for figure in TASK_FIGURES
                    if f"{figure}/{name}" in figures
                ),
            ]
        )
        for name in names
    ]
    return "  ".join(shown)
