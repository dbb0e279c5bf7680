"""Compiled layers have one graph per shape that needs its own, and no graph has a break."""

from typing import Any

import pytest
import torch

from tests.trainer.alone import ALONE
from trainer.config import TrainConfig
from trainer.engine import DeepSpeedEngine
from trainer.model.loss import LossSums
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig

pytestmark = pytest.mark.nightly

SHAPE = ModelConfig(num_layers=2, hidden_size=32, num_heads=2, vocab_size=128, max_positions=256)


class Engine:
    """Stands in for DeepSpeed's engine."""

    def __init__(self, model: GLM) -> None:
        self.module = model

    def compile(self, *args: Any, **more: Any) -> None:
        self.module.compile(*args, **more)

    def eval(self) -> None:
        self.module.eval()

    def train(self) -> None:
        self.module.train()

    def __call__(self, batch: dict[str, torch.Tensor]) -> LossSums:
        return self.module.loss_sum(batch)


def batch(width: int, reach: int) -> dict[str, torch.Tensor]:
    tokens = torch.randint(0, 128, (2, width))
    return {
        "tokens": tokens,
        "targets": tokens,
        "loss_mask": (torch.arange(width) < reach).expand(2, width),
        "position_ids": torch.zeros(2, 2, width, dtype=torch.long),
        "sep": torch.tensor([5, 9]),
    }


# PyTorch hides this warning, which its own code causes, but not where warnings are errors.
@pytest.mark.filterwarnings(r"ignore:The \.grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("checkpointed", [False, True])
def test_two_graphs_for_all_widths_and_no_break(
    monkeypatch: pytest.MonkeyPatch, checkpointed: bool
) -> None:
    # This import takes seconds, and all workers import this test's module.
    from torch._dynamo.testing import CompileCounter  # noqa: PLC0415
    from torch._dynamo.utils import counters  # noqa: PLC0415

    counter = CompileCounter()
    plain = torch.nn.Module.compile
    monkeypatch.setattr(
        torch.nn.Module, "compile", lambda module, **_: plain(module, backend=counter)
    )
    model = GLM(SHAPE, checkpoint_activations=checkpointed)
    monkeypatch.setattr(
        "deepspeed.initialize", lambda *, model, **_: (Engine(model), None, None, None)
    )
    settings = {"train_micro_batch_size_per_gpu": 2}
    engine = DeepSpeedEngine(
        model, config=TrainConfig(), deepspeed=settings, compiles=True, ranks=ALONE
    )
    counters.clear()
    graphs = []
    for width, reach in ((64, 60), (128, 70), (192, 180), (128, 128)):
        model(batch(width, reach)).loss.sum().backward()
        graphs.append(counter.frame_count)
    # The first width has its own graph unless earlier tests had others; the second graph serves all
    # widths.
    assert graphs[1:] == [graphs[1]] * 3
    assert graphs[1] <= 2
    assert not counters["graph_break"]
    # Rows of tasks can have any width.
    for width in (10, 20, 30):
        assert engine.forward_eval(batch(width, width)).num_targets.tolist() == [width] * 2
    assert counter.frame_count == graphs[-1]
