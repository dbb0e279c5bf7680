from dataclasses import replace

import pytest
import torch

from tests.trainer.saved import SHAPE
from trainer.model.model import GLM

RATE = 0.3
SHAPES = {
    "hidden": replace(SHAPE, hidden_dropout=RATE),
    "attention": replace(SHAPE, attention_dropout=RATE),
}
"""The configurations of models that have dropout in only one place."""


def trained_once(kind: str, *, recomputes: bool, seed: int = 3) -> tuple[float, torch.Tensor]:
    """Return the loss of a batch and the gradient of the embeddings."""
    torch.manual_seed(0)
    model = GLM(SHAPES[kind], checkpoint_activations=recomputes)
    tokens = torch.arange(40).reshape(2, 20)
    batch = {"tokens": tokens, "targets": tokens + 1, "loss_mask": tokens > 5}
    torch.manual_seed(seed)
    loss = model.loss_sum({**batch, "sep": torch.tensor([4, 9])}).loss.sum()
    loss.backward()
    assert model.word_embeddings.weight.grad is not None
    return loss.item(), model.word_embeddings.weight.grad


@pytest.mark.parametrize("kind", SHAPES)
def test_masks_follow_from_the_seed_and_are_the_same_when_recomputed(kind: str) -> None:
    loss, gradient = trained_once(kind, recomputes=False)
    again, recomputed = trained_once(kind, recomputes=True)
    assert again == loss
    assert torch.equal(recomputed, gradient)
    other, _ = trained_once(kind, recomputes=False, seed=4)
    assert other != loss
