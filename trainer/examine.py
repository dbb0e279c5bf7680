"""Exams of a trained model, and of one in training.

    python -m trainer.evaluate MODEL --task hellaswag=FILE    a run, a checkpoint, a published one
    python -m trainer.train … --eval-task hellaswag=FILE      at every --eval-every

Under a launcher each rank answers its share; the figures are the same on any number of ranks.
"""

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from shards.errors import UserError
from shards.run import CAUSAL
from shards.shown import print_line
from trainer.examining import GMASK, MASK, Examination, Examining
from trainer.log import TASK_FIGURES
from trainer.model.loss import LossSums
from trainer.model.model import GLM
from trainer.opening import Opening
from trainer.ranks import Ranks
from trainer.start import StartedRun
from trainer.tasks.collate import placed
from trainer.tasks.exam import BATCH_TOKENS, Exam
from trainer.tasks.exams import open_exams, parse_exams
from trainer.tasks.phrasing import Phrasing
from trainer.tasks.sitting import Ask, sit
from trainer.tokenizer import TextTokenizer
from trainer.trained import Origin, find_tokenizer, origin_of


def phrasing_of(examining: Examining, tokenizer: TextTokenizer, origin: Origin) -> Phrasing:
    """Return how a model is asked.

    Raises:
        UserError: it cannot be asked so.
    """
    is_causal, positions = origin.objective == CAUSAL, origin.shape.max_positions
    # A run without task masks has seen no other blank.
    blank = examining.blank or (GMASK if origin.task_mask else MASK)
    if examining.length is not None and examining.length > positions:
        raise UserError(
            f"--length {examining.length:,}: the model has {positions:,} positions; give as many "
            "or fewer."
        )
    if examining.blank is not None and is_causal:
        raise UserError("--blank is for a glm; this model is causal and fills none.")
    if examining.unidirectional and is_causal:
        raise UserError("--unidirectional is for a glm; this model is causal and reads so anyway.")
    return Phrasing(
        tokenizer=tokenizer,
        is_causal=is_causal,
        length=examining.length or positions,
        mask=None if is_causal else tokenizer.special[blank],
        unidirectional=examining.unidirectional,
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
    phrasing = phrasing_of(asked.examining, find_tokenizer(origin, asked.opening), origin)
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
    return open_exams(files, phrasing_of(Examining(), tokenizer, origin))


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
