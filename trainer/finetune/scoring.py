"""Computes scores, answers and losses from a model's outputs for batches of examples.

The losses of choices follow THUDM/GLM (commit 4f61ed7, finetune_glm.py), but are computed per
example, so that a batch can be split in any way.
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
"""Pads the scores of an example with fewer choices than the largest number in its batch."""
NO_ANSWER = -1
"""The answer for scores that are not finite."""


def have_choices(examples: Sequence[Example]) -> bool:
    """Return whether the examples of a task have choices or words, rather than texts to predict."""
    return any(len(example.rows) > 1 or example.words for example in examples)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A model's answer to an example."""

    answer: int
    """The number of the best choice or word; for a text, 1 if all its tokens are the most probable
    ones, else 0."""
    loss: float = 0.0
    """The loss of a text in nats, summed over its tokens."""
    correct: int = 0
    """The number of tokens of a text that are the most probable ones."""
    num_targets: int = 0


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Converts the outputs of rows to scores of choices."""

    pad: int
    """The padding token."""
    has_choices: bool
    """The result of `have_choices` for the examples."""
    penalty: float = 0.0
    """The exponent p: scores are divided by (number of targets)^p if p is above 0."""

    def batch(self, examples: Sequence[Example]) -> dict[str, Tensor]:
        """Return one or more examples of one kind as a batch for `GLM.forward`."""
        batch = collate([[row] for row in rows_of(examples)], pad=self.pad)
        widest = max(len(example.words) for example in examples)
        if widest:
            words = [[*one.words, *[0] * (widest - len(one.words))] for one in examples]
            batch["words"] = torch.tensor(words)
        return batch

    def scores(self, outputs: LossSums | Tensor, examples: Sequence[Example]) -> Tensor:
        """Return the scores of each example's choices, float32[q, k], with gradients.

        Args:
            outputs: the outputs of the model for the batch of the examples.
            examples: examples with choices or words; k is the largest number of choices or words of
                an example.
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
        """Return the predictions for a batch of examples from the outputs of the model."""
        if self.has_choices:
            best = self.scores(outputs, examples).max(1)  # NaN if any score is NaN
            chosen = best.indices.masked_fill(~best.values.isfinite(), NO_ANSWER)
            return [Prediction(answer=choice) for choice in chosen.tolist()]
        assert isinstance(outputs, LossSums)
        return [
            Prediction(answer=int(correct == count), loss=loss, correct=correct, num_targets=count)
            for loss, correct, count in zip(*(column.tolist() for column in outputs), strict=True)
        ]


def losses(scores: Tensor, labels: Tensor, kind: str) -> Tensor:
    """Return the loss of each example, float32[q]; the loss of a batch is the mean of these.

    Args:
        scores: the scores of the choices, float32[q, k].
        labels: the number of the right choice, int64[q].
        kind: one of `LOSSES`. cross_entropy: the cross-entropy of a softmax over the scores. hinge:
            the sum, over all wrong scores, of the amount by which the score exceeds the right score
            minus 1. generative: the negated right score. mix: the sum of generative and
            cross_entropy.
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
        model: the model in evaluation mode, on any device.
        examples: the examples of one task.
        length_penalty: the exponent p: a choice's score is divided by (number of tokens)^p if p is
            above 0.
        at_once: the number of examples per batch.

    Raises:
        UserError: a score is not a finite number.
    """
    # Any token may pad a row, because no token sees the tokens after it.
    scoring = Scoring(pad=0, has_choices=have_choices(examples), penalty=length_penalty)
    device, given = model.word_embeddings.weight.device, []
    for first in range(0, len(examples), at_once):
        units = examples[first : first + at_once]
        given += scoring.predictions(model(to_device(scoring.batch(units), device)), units)
    for example, one in zip(examples, given, strict=True):
        if one.answer == NO_ANSWER or not math.isfinite(one.loss):
            raise UserError(
                f"the model's scores of {example.guid} are not finite numbers: its training "
                "diverged, or they overflow in its dtype. Use an earlier checkpoint, or --dtype "
                "fp32."
            )
    return given
