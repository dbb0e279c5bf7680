import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.model.loss import LossSums, loss_sums

VOCABULARY = 19
SAMPLES, LENGTH, WIDTH = 3, 16, 8


def given(share: float = 0.4) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Hidden states, head, targets and loss mask; the second sample has no target."""
    generator = torch.Generator().manual_seed(4)
    hidden = torch.randn(SAMPLES, LENGTH, WIDTH, generator=generator, requires_grad=True)
    head = torch.randn(VOCABULARY, WIDTH, generator=generator, requires_grad=True)
    targets = torch.randint(0, VOCABULARY, (SAMPLES, LENGTH), generator=generator)
    mask = torch.rand(SAMPLES, LENGTH, generator=generator) < share
    mask[1] = False
    return hidden, head, targets, mask


def sums_and_gradients(chunk: int, weights: Tensor) -> tuple[LossSums, Tensor, Tensor]:
    hidden, head, targets, mask = given()
    sums = loss_sums(
        hidden, lambda rows: rows @ head.T, targets=targets, loss_mask=mask, chunk=chunk
    )
    (sums.loss * weights).sum().backward()
    assert hidden.grad is not None
    assert head.grad is not None
    return sums, hidden.grad, head.grad


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
def test_chunks_change_nothing(chunk: int) -> None:
    weights = torch.tensor([1.0, 2.0, -0.5])
    sums, hidden_grad, head_grad = sums_and_gradients(chunk, weights)
    hidden, head, targets, mask = given()
    logits = hidden @ head.T
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none") * mask
    (losses.sum(1) * weights).sum().backward()
    assert sums.loss.dtype == torch.float32
    torch.testing.assert_close(sums.loss, losses.sum(1))
    assert sums.correct.tolist() == ((logits.argmax(-1) == targets) & mask).sum(1).tolist()
    assert sums.num_targets.tolist() == mask.sum(1).tolist()
    assert sums.num_targets[1] == sums.loss[1] == 0
    torch.testing.assert_close(hidden_grad, hidden.grad)
    torch.testing.assert_close(head_grad, head.grad)
