"""A GLM that is fine-tuned: it gives the scores of answers, by a classifier's head if asked to.

Its state dict is a GLM's, and `head.…` beside it, so that its checkpoints open as a GLM's do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.model.cache import Cache
from trainer.model.dropout import Seeds
from trainer.model.loss import LossSums, Project, loss_sums
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.tasks.heads import Head
from trainer.tasks.task import POOLS
from trainer.tuning.losses import NO_CHOICE

ABSENT = -1
"""Among a question's words: there is none."""


@dataclass(frozen=True, kw_only=True)
class Answering:
    """What a fine-tuned model has beyond a GLM."""

    classes: int = 0
    """How many numbers a head gives for a row; 0: there is no head."""
    pool: str = POOLS[0]
    """Where it looks."""
    smoothing: float = 0.0
    """Of targets in training: the share that is spread over the vocabulary."""


class Outputs(NamedTuple):
    """Of a batch of b rows; all have gradients but `correct` and `num_targets`."""

    scores: Tensor
    """float32[b, k]: logits of words or classes, or k = 1 and log p of all targets."""
    loss: Tensor
    """float32[b]: cross-entropy in nats, smoothed in training, summed over targets."""
    correct: Tensor
    """int64[b]: targets that have the largest logit."""
    num_targets: Tensor
    """int64[b]."""


class TunedGLM(GLM):
    """A GLM whose `forward` takes a batch of rows and returns `Outputs`."""

    def __init__(
        self, config: ModelConfig, *, answering: Answering, checkpoint_activations: bool = False
    ) -> None:
        """Make the model with initial values."""
        super().__init__(config, checkpoint_activations=checkpoint_activations)
        self.smoothing = answering.smoothing
        self.head = _head(config, answering) if answering.classes else None

    def forward(  # type: ignore[override]  # a batch gives more than losses
        self, batch: Mapping[str, Tensor] | Cache, *, seeds: Seeds | None = None
    ) -> Outputs | Tensor:
        """Return the outputs of a batch, or the logits that follow a cache as `GLM.forward` does.

        Args:
            batch: as `rows.collate` returns it; `pieces` isolates what shares a row. With
                `words`, int64[b, k], the scores are those of these tokens after the last one of a
                row.
            seeds: of dropout while training; None: they come from PyTorch's generator.
        """
        if isinstance(batch, Cache):
            return super().forward(batch)
        return self.outputs(batch, seeds)

    def outputs(self, batch: Mapping[str, Tensor], seeds: Seeds | None = None) -> Outputs:
        """Return the outputs of a batch, as `forward` does."""
        smoothing = self.smoothing if self.training else 0.0
        return outputs_of(self, batch, head=self.head, smoothing=smoothing, seeds=seeds)


def outputs_of(
    model: GLM,
    batch: Mapping[str, Tensor],
    *,
    head: Head | None = None,
    smoothing: float = 0.0,
    seeds: Seeds | None = None,
) -> Outputs:
    """Return the outputs of a batch.

    Args:
        model: on the batch's device.
        batch: as `TunedGLM.forward` takes it.
        head: of a classifier, there too.
        smoothing: of targets.
        seeds: of dropout while training.
    """
    mask = model.mask(batch["tokens"], batch.get("sep"), batch.get("pieces"))
    hidden = model.hidden_states(batch["tokens"], batch.get("position_ids"), mask, seeds=seeds)
    if head is not None:
        return _scored(head(hidden, batch["lengths"], seeds))
    if "words" in batch:
        rows = torch.arange(len(hidden), device=hidden.device)
        last = hidden[rows, batch["lengths"] - 1]
        logits = model.word_embeddings(last, project=True)
        words = batch["words"]
        scores = logits.float().gather(1, words.clamp(min=0))
        return _scored(scores.masked_fill(words == ABSENT, NO_CHOICE))

    def sums_of(hidden: Tensor, project: Project) -> LossSums:
        return loss_sums(
            hidden,
            project,
            targets=batch["targets"],
            loss_mask=batch["loss_mask"],
            chunk=model.chunk,
            smoothing=smoothing,
        )

    sums = LossSums(*model.word_embeddings(hidden, reduce=sums_of))
    return Outputs(-sums.loss[:, None], *sums)


def _head(config: ModelConfig, answering: Answering) -> Head:
    return Head(
        config.hidden_size,
        answering.classes,
        pool=answering.pool,
        dropout=config.hidden_dropout,
    )


def _scored(scores: Tensor) -> Outputs:
    none = scores.new_zeros(len(scores), dtype=torch.int64)
    return Outputs(scores.float(), scores.new_zeros(len(scores)), none, none)
