"""What a model answers to questions: in a run of fine-tuning, and from Python."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from shards.errors import UserError
from trainer.finetune.batches import Scoring, are_chosen
from trainer.model.loss import LossSums
from trainer.model.model import GLM
from trainer.tasks.collate import placed
from trainer.tasks.rows import Question

NONE = -1
"""In place of an answer: scores that are not finite choose nothing."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a model gives for a question."""

    prediction: int
    """The number of the best choice or word; 1 or 0 for a text that is the most probable or
    not."""
    loss: float
    """Of a text in nats, summed over its tokens."""
    correct: int
    """Tokens of a text that were the most probable ones."""
    num_targets: int


def answers_in(
    outputs: LossSums | Tensor, questions: Sequence[Question], scoring: Scoring
) -> list[Answer]:
    """Return the answers that outputs of a batch of questions hold."""
    if scoring.chosen:
        best = scoring.scores(outputs, questions).max(1)  # NaN if any is
        chosen = best.indices.masked_fill(~best.values.isfinite(), NONE)
        return [
            Answer(prediction=choice, loss=0, correct=0, num_targets=0)
            for choice in chosen.tolist()
        ]
    assert isinstance(outputs, LossSums)
    return [
        Answer(prediction=int(correct == count), loss=loss, correct=correct, num_targets=count)
        for loss, correct, count in zip(*(column.tolist() for column in outputs), strict=True)
    ]


@torch.no_grad()
def answer(
    model: GLM,
    questions: Sequence[Question],
    *,
    length_penalty: float = 0.0,
    at_once: int = 8,
) -> list[Answer]:
    """Return a model's answers, in the order of the questions.

    Args:
        model: in evaluation mode, on any device.
        questions: of one task.
        length_penalty: a choice's score is divided by its number of tokens to this power.
        at_once: questions of a batch.

    Raises:
        UserError: a score is not a finite number.
    """
    # Rows may be filled up with any token: none sees what follows it.
    scoring = Scoring(pad=0, chosen=are_chosen(questions), penalty=length_penalty)
    device, given = model.word_embeddings.weight.device, []
    for first in range(0, len(questions), at_once):
        units = questions[first : first + at_once]
        batch = placed(scoring.batch(units), device)
        given += answers_in(model(batch), units, scoring)
    for question, one in zip(questions, given, strict=True):
        if one.prediction == NONE or not math.isfinite(one.loss):
            raise UserError(
                f"the model's scores of {question.guid} are not finite numbers: its training "
                "diverged, or they overflow in its dtype. Take an earlier checkpoint, or --dtype "
                "fp32."
            )
    return given
