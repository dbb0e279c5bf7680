from dataclasses import replace

import pytest
import torch
from torch import Tensor

from trainer.model.dropout import Dropout, Seeds
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig

pytestmark = pytest.mark.usefixtures("torch_dynamo")

SHAPE = ModelConfig(
    num_layers=2,
    hidden_size=32,
    num_heads=2,
    vocab_size=128,
    max_positions=64,
    hidden_dropout=0.2,
    attention_dropout=0.3,
)


def masks(slots: range, *, tokens: int = 64, step: int = 1, width: int = 32) -> Dropout:
    shape = replace(SHAPE, hidden_size=width)
    return Dropout(Seeds.of_slots(0, step, slots), shape, tokens=tokens)


def dropped(slots: range, *, site: int = 1, rate: float = 0.2, **more: int) -> Tensor:
    """Which units are dropped, [samples, tokens, width]."""
    made = masks(slots, **more)
    ones = torch.ones(len(slots), more.get("tokens", 64), more.get("width", 32))
    return made.hidden(ones, rate, site) == 0


def test_a_slot_has_the_same_masks_in_any_batch() -> None:
    whole = dropped(range(6))
    assert torch.equal(whole[2:5, :32], dropped(range(2, 5), tokens=32))
    weights = torch.rand(6, 2, 64, 64)
    together = masks(range(6)).weights(weights, 0.3, 1)
    alone = masks(range(4, 5), tokens=40).weights(weights[4:5, :, :40, :40], 0.3, 1)
    assert torch.equal(together[4:5, :, :40, :40], alone)
    assert len(set(alone.ne(0).flatten(2).sum(2).flatten().tolist())) == 2  # heads differ


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_units_are_dropped_independently_at_their_rate(rate: float) -> None:
    lost = dropped(range(32), tokens=512, width=256, rate=rate).flatten(0, 1).double()
    standard = (lost - rate) / (rate * (1 - rate)) ** 0.5
    rows = len(standard)
    assert abs(standard.mean().item()) < 5 / standard.numel() ** 0.5
    correlation = standard.T @ standard / rows
    correlation.fill_diagonal_(0)
    assert correlation.abs().max() < 6 / rows**0.5
    assert standard.sum(1).var().item() == pytest.approx(256, rel=0.1)


def batch(*, width: int = 64) -> dict[str, Tensor]:
    torch.manual_seed(3)
    tokens = torch.randint(8, 128, (6, 64))
    places = torch.arange(64)
    seps = torch.tensor([5, 30, 9, 20, 12, 3])
    return {
        "tokens": tokens[:, :width],
        "targets": tokens.roll(-1, 1)[:, :width],
        "loss_mask": ((places >= seps[:, None]) & (places < 40))[:, :width],
        "position_ids": torch.stack([places, torch.zeros_like(places)]).expand(6, 2, 64)[
            ..., :width
        ],
        "sep": seps,
    }


def gradients(
    sizes: list[int], *, width: int = 64, checkpointed: bool = False
) -> tuple[list[float], list[Tensor]]:
    torch.manual_seed(7)
    model = GLM(SHAPE, checkpoint_activations=checkpointed)
    rows, losses, first = batch(width=width), [], 0
    for size in sizes:
        part = {name: tensor[first : first + size] for name, tensor in rows.items()}
        torch.manual_seed(first)  # nothing depends on PyTorch's generator
        sums = model(part, seeds=Seeds.of_slots(0, 1, range(first, first + size)))
        sums.loss.sum().backward()
        losses += sums.loss.tolist()
        first += size
    return losses, [p.grad for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize(
    ("sizes", "width", "checkpointed"),
    [([1] * 6, 64, False), ([4, 2], 48, False), ([3, 3], 64, True)],
)
def test_micro_batches_of_any_size_and_width_learn_the_same(
    sizes: list[int], width: int, checkpointed: bool
) -> None:
    losses, whole = gradients([6])
    split, parts = gradients(sizes, width=width, checkpointed=checkpointed)
    assert split == pytest.approx(losses, rel=1e-5)
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
