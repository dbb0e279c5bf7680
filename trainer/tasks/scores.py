"""How probable a model finds the targets of rows."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from trainer.model.model import GLM


class Scores(NamedTuple):
    """Of a batch of b rows."""

    log_probability: Tensor
    """float32[b], of all targets of a row: the sum of their logarithms; has gradients."""
    is_greedy: Tensor
    """bool[b]: every target is the most probable token; true for a row without targets."""
    num_targets: Tensor
    """int64[b]."""


def score(model: GLM, batch: Mapping[str, Tensor]) -> Scores:
    """Return how probable the targets of rows are.

    The softmax is in float32 over all rows of the embedding, those of the padding too, as in
    THUDM/GLM (commit 4f61ed7, finetune_glm.py). Logits are made only where there is a target.

    Args:
        model: on the batch's device.
        batch: as `rows.collate` returns it.
    """
    hidden = _hidden(model, batch)
    rows, places = batch["loss_mask"].nonzero(as_tuple=True)
    wanted = batch["targets"][rows, places]
    logits = model.word_embeddings(hidden[rows, places], project=True).float()
    gained = logits.gather(1, wanted[:, None])[:, 0] - logits.logsumexp(1)
    sums = gained.new_zeros(len(hidden)).index_add(0, rows, gained)
    missed = torch.zeros(len(hidden), device=hidden.device)
    missed.index_add_(0, rows, (logits.argmax(1) != wanted).float())
    return Scores(sums, missed == 0, batch["loss_mask"].sum(1))


def last_logits(model: GLM, batch: Mapping[str, Tensor]) -> Tensor:
    """Return the logits at the last place of each row, float32[b, V], with gradients."""
    hidden = _hidden(model, batch)
    last = batch["lengths"].to(hidden.device) - 1
    logits: Tensor = model.word_embeddings(
        hidden[torch.arange(len(hidden), device=hidden.device), last], project=True
    )
    return logits.float()


def _hidden(model: GLM, batch: Mapping[str, Tensor]) -> Tensor:
    mask = model.mask(batch["tokens"], batch.get("sep"), None)
    return model.hidden_states(batch["tokens"], batch.get("position_ids"), mask)
