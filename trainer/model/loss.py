"""The loss, summed sample by sample, without the logits of the whole batch in memory."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Project = Callable[[Tensor], Tensor]
TokenLoss = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""From logits float[k, V] and targets int64[k] to losses float32[k] and hits int64[k]."""


class LossSums(NamedTuple):
    """Losses of a batch of b samples, as sums, so that batches may be grouped by adding."""

    loss: Tensor
    """float32[b]: cross-entropy in nats, summed over the tokens that carry loss."""
    correct: Tensor
    """int64[b]: tokens that carry loss and whose target has the largest logit."""
    num_targets: Tensor
    """int64[b]: tokens that carry loss."""


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """Return the losses of targets, float32[k], and which have the largest logit, int64[k].

    Compiled, seven passes over the logits become one; uncompiled they are a third of a
    step of a GPT-2 with 124M parameters on an H100.

    Args:
        logits: float[k, V], of k tokens; the loss is computed in fp32.
        targets: int64[k], their next tokens.
        smoothing: e; the loss is (1 - e) x cross-entropy + e x the mean of -log p of all tokens.
    """
    losses = F.cross_entropy(logits.float(), targets, reduction="none", label_smoothing=smoothing)
    # Last: the backward pass recomputes up to what it needs, and this it does not.
    hits = logits.detach().argmax(1) == targets
    return losses, hits.long()


def loss_sums(
    hidden: Tensor,
    project: Project,
    batch: Mapping[str, Tensor],
    *,
    chunk: int,
    kept: int = 0,
    token_loss: TokenLoss = cross_entropy,
) -> LossSums:
    """Return the sums of a batch; logits are made only where there is loss, and in fp32 for it.

    Args:
        hidden: float[b, n, h], the output of the last layer.
        project: from float[k, h] to logits float[k, V].
        batch: `targets`, int64[b, n]; `loss_mask`, [b, n], bool, or 0 and 1; and, if they are
            known, `loss_indices`, int64[k]: the indices of the flattened mask where it holds. To
            find them on a GPU, the CPU would have to wait until the GPU has done all its work.
        chunk: for how many tokens to make logits at a time.
        kept: of how many tokens logits are kept for the backward pass. With more tokens, in more
            than one chunk, it makes all of them again.
        token_loss: the loss of each token, and whether it is hit.
    """
    mask = batch["loss_mask"].bool()
    indices = batch.get("loss_indices")
    if indices is None:
        indices = mask.reshape(-1).nonzero().squeeze(1)
    rows = hidden.reshape(-1, hidden.shape[-1]).index_select(0, indices)
    row_targets = batch["targets"].reshape(-1).index_select(0, indices)

    def of_chunk(rows: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return token_loss(project(rows), targets)

    losses, hits = _in_chunks(
        of_chunk, rows, row_targets, chunk, is_kept=len(rows) <= max(chunk, kept)
    )
    # Copied to distinct indices, then summed along rows: the order of addition is the same on every
    # device, unlike with a scatter.
    loss = losses.new_zeros(mask.numel()).index_copy(0, indices, losses)
    correct = hits.new_zeros(mask.numel()).index_copy(0, indices, hits)
    return LossSums(loss.view(mask.shape).sum(1), correct.view(mask.shape).sum(1), mask.sum(1))


def _in_chunks(
    of_chunk: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    rows: Tensor,
    targets: Tensor,
    chunk: int,
    *,
    is_kept: bool,
) -> tuple[Tensor, ...]:
    """Return the results of a function for rows float[k, h] and targets, a chunk at a time.

    Logits that are not kept are made again in the backward pass.
    """
    # There is no dropout in here, so no random state to keep.
    again = partial(checkpoint, of_chunk, use_reentrant=False, preserve_rng_state=False)
    make = of_chunk if is_kept else again
    parts = [
        make(*part)
        for part in zip(torch.split(rows, chunk), torch.split(targets, chunk), strict=True)
    ]
    return tuple(torch.cat(column) for column in zip(*parts, strict=True))
