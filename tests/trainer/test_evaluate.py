from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import torch

from tests.trainer.alone import ALONE
from trainer.config import Config
from trainer.data import RunData, open_data
from trainer.evaluate.validation import evaluate
from trainer.loss_tally import LossTally
from trainer.model.loss import LossSums


class FixedLoss:
    """In place of a Stepper: a model whose loss is 2 nats per token, every other token correct."""

    micro_batch = 4

    def evaluate(self, batch: Mapping[str, torch.Tensor], tally: LossTally) -> LossTally:
        counts = batch["loss_mask"].sum(1)
        return tally.plus(batch, LossSums(2.0 * counts, counts // 2, counts))


@pytest.fixture
def data(configure: Callable[..., Config]) -> RunData:
    return open_data(configure("--objective", "causal"))


def test_it_can_be_stopped(data: RunData) -> None:
    stepper = FixedLoss()
    assert evaluate(stepper, data, ranks=ALONE, stop=lambda: 130) is None  # type: ignore[arg-type]  # as above


def test_data_without_validation(data: RunData) -> None:
    without = replace(data, held_out=None)
    assert evaluate(FixedLoss(), without, ranks=ALONE) is None  # type: ignore[arg-type]  # as above
