"""Scores, answers and losses, computed from a model's outputs for batches of examples.

Losses of choices are as in THUDM/GLM (commit 4f61ed7, finetune_glm.py); a loss here is of one
example, so that a batch may be split into any parts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from shards.errors import UserError
from trainer.finetune.command import CROSS_ENTROPY, GENERATIVE, HINGE
from trainer.model.loss import LossSums
from trainer.model.model import GLM
from trainer.tasks.collate import collate, to_device
from trainer.tasks.rows import Example, rows_of

NO_CHOICE = -10_000.0
"""The score of a choice that an example lacks, where others of the batch have it."""
NO_ANSWER = -1
"""No answer: scores that are not finite choose nothing."""


def have_choices(examples: Sequence[Example]) -> bool:
    """Return whether the examples of a task offer choices or words, not ask for texts."""
    return any(len(example.rows) > 1 or example.words for example in examples)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A model's answer to an example."""

    answer: int
    """The number of the best choice or word; 1 or 0 for a text that is the most probable or
    not."""
    loss: float = 0.0
    """Of a text in nats, summed over its tokens."""
    correct: int = 0
    """Tokens of a text that were the most probable ones."""
    num_targets: int = 0


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How the outputs of rows become scores of choices."""

    pad: int
    """The token that fills rows up."""
    has_choices: bool
    """Whether examples offer choices or words (`have_choices`)."""
    penalty: float = 0.0
    """Scores are divided by (number of targets)^penalty if that is above 0."""

    def batch(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """Return examples, 1 or more of one kind, as a batch for `GLM.forward`."""
        batch = collate([[row] for row in rows_of(examples)], pad=self.pad)
        widest = max(len(example.words) for example in examples)
        if widest:
            words = [[*one.words, *[0] * (widest - len(one.words))] for one in examples]
            batch["words"] = torch.tensor(words)
        return batch

    def scores(self, outputs: LossSums | Tensor, examples: Sequence[Example]) -> Tensor:
        """Return the scores of each example's choices, float32[q, k], with gradients.

        Args:
            outputs: of their batch.
            examples: with choices or words; k is the most that one of them has.
        """
        sizes = [len(example.words or example.rows) for example in examples]
        if isinstance(outputs, Tensor):
            parts = [row[:size] for row, size in zip(outputs, sizes, strict=True)]
        else:
            scores = -outputs.loss
            if self.penalty > 0:
                scores = scores / outputs.num_targets.clamp(min=1) ** self.penalty
            parts = list(torch.split(scores, sizes))
        widest = max(sizes)
        return torch.stack([F.pad(one, (0, widest - len(one)), value=NO_CHOICE) for one in parts])

    def predictions(
        self, outputs: LossSums | Tensor, examples: Sequence[Example]
    ) -> list[Prediction]:
        """Return the predictions that outputs of a batch of examples hold."""
        if self.has_choices:
            best = self.scores(outputs, examples).max(1)  # NaN if any is
            chosen = best.indices.masked_fill(~best.values.isfinite(), NO_ANSWER)
            return [Prediction(answer=choice) for choice in chosen.tolist()]
        assert isinstance(outputs, LossSums)
        return [
            Prediction(answer=int(correct == count), loss=loss, correct=correct, num_targets=count)
            for loss, correct, count in zip(*(column.tolist() for column in outputs), strict=True)
        ]


def losses(scores: Tensor, labels: Tensor, kind: str) -> Tensor:
    """Return the loss of each example, float32[q]; their mean is the loss of a batch.

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


@torch.no_grad()
def predict(
    model: GLM,
    examples: Sequence[Example],
    *,
    length_penalty: float = 0.0,
    at_once: int = 8,
) -> list[Prediction]:
    """Return a model's predictions, in the order of the examples.

    Args:
        model: in evaluation mode, on any device.
        examples: of one task.
        length_penalty: a choice's score is divided by its number of tokens to this power.
        at_once: examples of a batch.

    Raises:
        UserError: a score is not a finite number.
    """
    # Rows may be filled up with any token: none sees what follows it.
    scoring = Scoring(pad=0, has_choices=have_choices(examples), penalty=length_penalty)
    device, given = model.word_embeddings.weight.device, []
    for first in range(0, len(examples), at_once):
        units = examples[first : first + at_once]
        given += scoring.predictions(model(to_device(scoring.batch(units), device)), units)
    for example, one in zip(examples, given, strict=True):
        if one.answer == NO_ANSWER or not math.isfinite(one.loss):
            raise UserError(
                f"the model's scores of {example.guid} are not finite numbers: its training "
                "diverged, or they overflow in its dtype. Take an earlier checkpoint, or --dtype "
                "fp32."
            )
    return given
