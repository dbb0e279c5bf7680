"""The loss, summed sample by sample, without the logits of the whole batch in memory."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Project = Callable[[Tensor], Tensor]


class LossSums(NamedTuple):
    """What a batch of b samples says of a model; sums, so that any grouping is an addition."""

    loss: Tensor
    """float32[b]: cross-entropy in nats, summed over the tokens that carry loss."""
    correct: Tensor
    """int64[b]: tokens that carry loss and whose target has the largest logit."""
    num_targets: Tensor
    """int64[b]: tokens that carry loss."""


def loss_sums(
    hidden: Tensor, project: Project, *, targets: Tensor, loss_mask: Tensor, chunk: int
) -> LossSums:
    """Return the sums of a batch. Logits are made only where there is loss, in fp32 for the loss.

    With more than one chunk, the backward pass makes the logits again instead of keeping them.

    Args:
        hidden: float[b, n, h], what the last layer gives.
        project: float[k, h] to logits float[k, V].
        targets: int64[b, n].
        loss_mask: [b, n], bool, or 0 and 1.
        chunk: for how many tokens to make logits at a time.
    """
    mask = loss_mask.bool()
    places = mask.reshape(-1).nonzero().squeeze(1)
    rows = hidden.reshape(-1, hidden.shape[-1]).index_select(0, places)
    wanted = targets.reshape(-1).index_select(0, places)
    losses, hits = _by_chunk(rows, wanted, project, chunk=chunk)
    # To distinct places, then along rows: one order of addition on every device, unlike scatter.
    loss = losses.new_zeros(mask.numel()).index_copy(0, places, losses)
    correct = hits.new_zeros(mask.numel()).index_copy(0, places, hits)
    return LossSums(loss.view(mask.shape).sum(1), correct.view(mask.shape).sum(1), mask.sum(1))


def _by_chunk(rows: Tensor, wanted: Tensor, project: Project, *, chunk: int) -> tuple[Tensor, ...]:
    """Return loss float32[k] and hits int64[k] of rows float[k, h]."""

    def judge(some: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        logits = project(some).float()
        hits = logits.detach().argmax(1) == targets
        return F.cross_entropy(logits, targets, reduction="none"), hits.long()

    if len(rows) <= chunk:
        return judge(rows, wanted)
    # No dropout in here, so no random state to keep.
    parts = [
        checkpoint(judge, some, targets, use_reentrant=False, preserve_rng_state=False)
        for some, targets in zip(torch.split(rows, chunk), torch.split(wanted, chunk), strict=True)
    ]
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))
