from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.trainer.saved import SHAPE
from trainer.model.dropout import Dropout, Seeds

SIZES: Any = {"num_heads": 2, "max_positions": 64, "attention_dropout": 0.3}


def masks(slots: range, *, tokens: int = 64, step: int = 1, width: int = 32) -> Dropout:
    shape = replace(SHAPE, **SIZES, hidden_size=width)
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
