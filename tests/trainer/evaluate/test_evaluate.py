from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from tests.trainer.alone import ALONE
from trainer.config import TrainConfig
from trainer.data import open_data
from trainer.model.loss import LossSums
from trainer.pretraining import evaluate


def losses(batch: Mapping[str, torch.Tensor]) -> LossSums:
    """Stand in for a model: each token loses 2 nats, and every other token is correct."""
    counts = batch["loss_mask"].sum(1)
    return LossSums(2.0 * counts, counts // 2, counts)


def test_validation_ends_when_asked_to(configure: Callable[..., TrainConfig]) -> None:
    config = configure("--objective", "causal")
    data = open_data(config, config.sampling_plan(), config.shape)
    tally = evaluate(losses, data, at_once=4, ranks=ALONE)
    assert tally is not None
    assert tally.loss == 2
    assert evaluate(losses, data, at_once=4, ranks=ALONE, stop=lambda: 130) is None
    assert evaluate(losses, replace(data, held_out=None), at_once=4, ranks=ALONE) is None
