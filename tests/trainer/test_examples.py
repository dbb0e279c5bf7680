"""The loader in other people's loops, as docs/loading.md shows it."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from shards import Dataset
from shards.order.sampler import Sampler
from shards.order.streams import streams_of
from shards.windows import causal_windows
from tests.shards.numbered import SIZE, build
from trainer.loader import Loader


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("numbered")
    build(directory)
    return directory


def make_loader(directory: Path) -> Loader:
    dataset = Dataset.open(directory)
    sampler = Sampler(streams_of(dataset), seed=1, num_scatters=1, window=causal_windows(16))
    # With an end, Lightning does not take one batch too many, and little is read ahead.
    return Loader(sampler, batch_size=8, steps=6)


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(SIZE, 8), nn.Linear(8, SIZE))


def loss_of(model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    logits, mask = model(batch["tokens"]), batch["loss_mask"]
    return nn.functional.cross_entropy(logits[mask], batch["targets"][mask])


def train(model: nn.Module, loader: Loader, steps: int) -> list[float]:
    """Take steps of plain gradient descent; torch.optim takes seconds to import."""
    losses = []
    for batch in islice(loader, steps):
        loss = loss_of(model, batch)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter.sub_(gradient, alpha=0.1)
        losses.append(loss.item())
    return losses


def test_plain_pytorch(directory: Path) -> None:
    through = train(make_model(), make_loader(directory), 6)
    model, loader = make_model(), make_loader(directory)
    stopped = train(model, loader, 2)
    resumed = make_loader(directory)
    resumed.load_state_dict(loader.state_dict())
    assert stopped + train(model, resumed, 4) == through
    assert through[-1] < through[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Lightning warns about everything that it does not know
def test_lightning(directory: Path, tmp_path: Path) -> None:
    lightning = pytest.importorskip("pytorch_lightning", reason="needs pytorch-lightning")

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = make_model()
            self.losses: list[float] = []

        def training_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            loss = loss_of(self.model, batch)
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def fit(steps: int, checkpoint: Path | None = None) -> tuple[Any, Model]:
        trainer = lightning.Trainer(
            max_steps=steps,
            accelerator="cpu",
            default_root_dir=tmp_path,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        model = Model()
        trainer.fit(model, make_loader(directory), ckpt_path=checkpoint)
        return trainer, model

    _, through = fit(6)
    trainer, stopped = fit(2)
    trainer.save_checkpoint(tmp_path / "2.ckpt")
    _, resumed = fit(6, tmp_path / "2.ckpt")
    assert len(resumed.losses) == 4
    assert stopped.losses + resumed.losses == through.losses
