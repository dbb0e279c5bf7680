"""A GLM that is fine-tuned: it gives the scores of answers."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.model.cache import Cache
from trainer.model.dropout import Seeds
from trainer.model.loss import LossSums, Project, loss_sums
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.tuning.losses import NO_CHOICE

ABSENT = -1
"""Among a question's words: there is none."""


class Outputs(NamedTuple):
    """Of a batch of b rows; all have gradients but `correct` and `num_targets`."""

    scores: Tensor
    """float32[b, k]: logits of words, or k = 1 and log p of all targets."""
    loss: Tensor
    """float32[b]: cross-entropy in nats, smoothed in training, summed over targets."""
    correct: Tensor
    """int64[b]: targets that have the largest logit."""
    num_targets: Tensor
    """int64[b]."""


class TunedGLM(GLM):
    """A GLM whose `forward` takes a batch of rows and returns `Outputs`."""

    def __init__(
        self, config: ModelConfig, *, smoothing: float = 0.0, checkpoint_activations: bool = False
    ) -> None:
        """Make the model with initial values.

        Args:
            config: its shape.
            smoothing: of targets in training: the share that is spread over the vocabulary.
            checkpoint_activations: recompute layers in the backward pass.
        """
        super().__init__(config, checkpoint_activations=checkpoint_activations)
        self.smoothing = smoothing

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
            logits: Tensor = super().forward(batch)
            return logits
        return self.outputs(batch, seeds)

    def outputs(self, batch: Mapping[str, Tensor], seeds: Seeds | None = None) -> Outputs:
        """Return the outputs of a batch, as `forward` does."""
        smoothing = self.smoothing if self.training else 0.0
        return outputs_of(self, batch, smoothing=smoothing, seeds=seeds)


def outputs_of(
    model: GLM,
    batch: Mapping[str, Tensor],
    *,
    smoothing: float = 0.0,
    seeds: Seeds | None = None,
) -> Outputs:
    """Return the outputs of a batch.

    Args:
        model: on the batch's device.
        batch: as `TunedGLM.forward` takes it.
        smoothing: of targets.
        seeds: of dropout while training.
    """
    mask = model.mask(batch["tokens"], batch.get("sep"), batch.get("pieces"))
    hidden = model.hidden_states(batch["tokens"], batch.get("position_ids"), mask, seeds=seeds)
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


def _scored(scores: Tensor) -> Outputs:
    none = scores.new_zeros(len(scores), dtype=torch.int64)
    return Outputs(scores.float(), scores.new_zeros(len(scores)), none, none)
