from dataclasses import replace

import pytest
import torch

from tests.trainer.saved import SHAPE
from trainer.model.dropout import Dropout, Seeds


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_units_are_dropped_independently_at_their_rate(rate: float) -> None:
    shape = replace(SHAPE, hidden_size=256, max_positions=512)
    made = Dropout(Seeds.of_slots(0, 1, range(32)), shape, tokens=512)
    lost = (made.hidden(torch.ones(32, 512, 256), rate, 1) == 0).flatten(0, 1).double()
    standard = (lost - rate) / (rate * (1 - rate)) ** 0.5
    rows = len(standard)
    assert abs(standard.mean().item()) < 5 / standard.numel() ** 0.5
    correlation = standard.T @ standard / rows
    correlation.fill_diagonal_(0)
    assert correlation.abs().max() < 6 / rows**0.5
    assert standard.sum(1).var().item() == pytest.approx(256, rel=0.1)
