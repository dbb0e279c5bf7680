"""Questions as batches of rows, and what a model answers and loses by what it gives for them.

Losses of choices are as in THUDM/GLM (commit 4f61ed7, finetune_glm.py); a loss here is of one
question, so that a batch may be split into any parts. Questions that ask for texts share rows, and
do not see each other:

    Part A of the first, of the second, … | Part B of the first, of the second, … | padding

Each token keeps the position that it has in a row of its own, and `Row.pieces` says whose it is, so
a question loses what it loses alone. A causal row is all Part B.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from shards.errors import UserError
from trainer.finetune.command import CROSS_ENTROPY, GENERATIVE, HINGE
from trainer.model.loss import LossSums
from trainer.model.model import GLM
from trainer.tasks.collate import collate, placed
from trainer.tasks.rows import Example, Row, rows_of

NO_CHOICE = -10_000.0
"""The score of a choice that a question lacks, where others of the batch have it."""


def are_chosen(questions: Sequence[Example]) -> bool:
    """Return whether the questions of a task offer choices or words, not ask for texts."""
    return any(len(question.rows) > 1 or question.words for question in questions)


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How the outputs of rows become scores of choices."""

    pad: int
    """The token that fills rows up."""
    chosen: bool
    """Whether questions offer choices or words (`are_chosen`)."""
    penalty: float = 0.0
    """Scores are divided by (number of targets)^penalty if that is above 0."""

    def batch(self, questions: Sequence[Example]) -> dict[str, Tensor]:
        """Return questions, 1 or more of one kind, as a batch for `GLM.forward`."""
        batch = collate(rows_of(questions), pad=self.pad)
        widest = max(len(question.words) for question in questions)
        if widest:
            words = [[*q.words, *[0] * (widest - len(q.words))] for q in questions]
            batch["words"] = torch.tensor(words)
        return batch

    def scores(self, outputs: LossSums | Tensor, questions: Sequence[Example]) -> Tensor:
        """Return the scores of each question's choices, float32[q, k], with gradients.

        Args:
            outputs: of their batch.
            questions: with choices or words; k is the most that one of them has.
        """
        sizes = [len(question.words or question.rows) for question in questions]
        if isinstance(outputs, Tensor):
            parts = [row[:size] for row, size in zip(outputs, sizes, strict=True)]
        else:
            scores = -outputs.loss
            if self.penalty > 0:
                scores = scores / outputs.num_targets.clamp(min=1) ** self.penalty
            parts = list(torch.split(scores, sizes))
        widest = max(sizes)
        return torch.stack(
            [F.pad(part, (0, widest - len(part)), value=NO_CHOICE) for part in parts]
        )


def losses(scores: Tensor, labels: Tensor, kind: str) -> Tensor:
    """Return the loss of each question, float32[q]; their mean is the loss of a batch.

    Args:
        scores: float32[q, k], of its choices.
        labels: int64[q], the number of the right one.
        kind: one of `LOSSES`. cross_entropy: of a softmax over the scores. hinge: by how much each
            wrong score is not 1 below the right one. generative: the right score, negated. mix:
            generative + cross_entropy.
    """
    right = scores.gather(1, labels[:, None])
    if kind == HINGE:
        return (1 + scores - right).clamp(min=0).sum(1) - 1
    entropy = F.cross_entropy(scores, labels, reduction="none")
    if kind == CROSS_ENTROPY:
        return entropy
    return -right[:, 0] if kind == GENERATIVE else entropy - right[:, 0]


def packed(questions: Sequence[Example]) -> list[Example]:
    """Return questions of one row each as fewer ones, none longer than the longest of them.

    Each row joins the first that has room.
    """
    rows = rows_of(questions)
    width = max(map(len, rows), default=0)
    groups: list[list[Row]] = []
    for row in rows:
        for group in groups:
            if sum(map(len, group)) + len(row) <= width:
                group.append(row)
                break
        else:
            groups.append([row])
    return [Example(guid="", idx=None, rows=(_joined(group),)) for group in groups]


def _joined(group: Sequence[Row]) -> Row:
    """Return rows as one, all Parts A before all Parts B."""
    numbers = [np.full(len(row), i, np.int64) for i, row in enumerate(group)]
    return Row(
        tokens=_in_parts(group, [row.tokens for row in group]),
        position_ids=_in_parts(group, [_positions(row) for row in group]),
        sep=sum(row.sep or 0 for row in group),
        targets=_in_parts(group, [row.targets for row in group]),
        loss_mask=_in_parts(group, [row.loss_mask for row in group]).astype(np.bool_),
        pieces=_in_parts(group, numbers),
    )


def _in_parts(group: Sequence[Row], arrays: Sequence[NDArray[np.generic]]) -> NDArray[np.int64]:
    """Return arrays [..., n] of rows joined: of each what belongs to Part A, then the rest."""
    halves = [np.split(a, [row.sep or 0], axis=-1) for a, row in zip(arrays, group, strict=True)]
    ordered = [half[part] for part in range(2) for half in halves]
    return np.concatenate(ordered, axis=-1).astype(np.int64)


def _positions(row: Row) -> NDArray[np.int64]:
    """Return a row's positions, int64[2, n]; a causal one counts from 0."""
    if row.position_ids is not None:
        return row.position_ids
    return np.stack([np.arange(len(row)), np.zeros(len(row), np.int64)])


NONE = -1
"""In place of an answer: scores that are not finite choose nothing."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a model gives for a question."""

    answer: int
    """The number of the best choice or word; 1 or 0 for a text that is the most probable or
    not."""
    loss: float
    """Of a text in nats, summed over its tokens."""
    correct: int
    """Tokens of a text that were the most probable ones."""
    num_targets: int


def answers_in(
    outputs: LossSums | Tensor, questions: Sequence[Example], scoring: Scoring
) -> list[Prediction]:
    """Return the answers that outputs of a batch of questions hold."""
    if scoring.chosen:
        best = scoring.scores(outputs, questions).max(1)  # NaN if any is
        chosen = best.indices.masked_fill(~best.values.isfinite(), NONE)
        return [
            Prediction(answer=choice, loss=0, correct=0, num_targets=0)
            for choice in chosen.tolist()
        ]
    assert isinstance(outputs, LossSums)
    return [
        Prediction(answer=int(correct == count), loss=loss, correct=correct, num_targets=count)
        for loss, correct, count in zip(*(column.tolist() for column in outputs), strict=True)
    ]


@torch.no_grad()
def predict(
    model: GLM,
    questions: Sequence[Example],
    *,
    length_penalty: float = 0.0,
    at_once: int = 8,
) -> list[Prediction]:
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
        if one.answer == NONE or not math.isfinite(one.loss):
            raise UserError(
                f"the model's scores of {question.guid} are not finite numbers: its training "
                "diverged, or they overflow in its dtype. Take an earlier checkpoint, or --dtype "
                "fp32."
            )
    return given
