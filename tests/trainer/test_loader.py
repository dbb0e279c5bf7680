"""The loader in its own loops and in those of other libraries, as in docs/loading.md.

The golden rows `blanks` and `drawn` pin the loader's batches.
"""

import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from shards.errors import UserError
from shards.manifest import write_manifest
from shards.reader import Dataset
from shards.sampling.sampler import Sampler
from shards.sampling.streams import streams_of
from shards.sampling.windows import WindowSpec, causal_windows, glm_windows
from tests.trainer.corpus import SIZE, build
from tests.trainer.texts import maker
from trainer.loader import Loader, Tensors

GLM, CAUSAL = glm_windows(64), causal_windows(33)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("rule")
    build(directory)
    return directory


def make_loader(
    directory: Path, window: WindowSpec = GLM, *, scatters: int = 1, **more: Any
) -> Loader:
    streams = streams_of(Dataset.open(directory))
    sampler = Sampler(streams, seed=5, num_scatters=scatters, window=window)
    return Loader(sampler, **{"batch_size": 12, **more})


def same(left: list[Tensors], right: list[Tensors]) -> bool:
    return len(left) == len(right) and all(
        a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
        for a, b in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("window", [GLM, CAUSAL])
@pytest.mark.parametrize("ahead", [0, 1, 9])
def test_a_run_may_have_an_end(directory: Path, ahead: int, window: WindowSpec) -> None:
    endless = make_loader(directory, window)
    with pytest.raises(TypeError, match="no end: give steps="):
        len(endless)
    usual = list(islice(endless, 5))
    loader = make_loader(directory, window, steps=5, ahead=ahead)
    assert same([*islice(loader, 3), *loader], usual)
    assert list(loader) == []
    resumed = make_loader(directory, window, steps=5, ahead=ahead)
    resumed.load_state_dict(loader.sampler.state_dict(36))
    assert same(list(resumed), usual[3:])
    assert len(resumed) == 5


def test_the_thread_ends_with_the_loop(directory: Path) -> None:
    def readers() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("loader")]

    batches = iter(make_loader(directory))
    next(batches)
    assert readers()
    assert isinstance(batches, Iterator)
    batches.close()  # type: ignore[attr-defined]  # it is a generator
    assert not readers()


def test_workers_of_a_data_loader_share_the_batches(directory: Path) -> None:
    loader = make_loader(directory)
    loader.load_state_dict(loader.sampler.state_dict(12))
    batches_read = list(islice(DataLoader(loader, batch_size=None, num_workers=2), 7))
    assert same(batches_read, list(islice(make_loader(directory), 8))[1:])


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")  # torchdata calls it
@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_data_loader(directory: Path, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="needs torchdata")
    before, after = (
        stateful.StatefulDataLoader(make_loader(directory), batch_size=None, num_workers=workers)
        for _ in range(2)
    )
    through = list(islice(before, 3))
    after.load_state_dict(before.state_dict())
    assert same([*through, *islice(after, 5)], list(islice(make_loader(directory), 8)))


def test_a_batch_that_placed_shards_do_not_fit(tmp_path: Path) -> None:
    """The misfit is reported before a shard is found missing on a node."""
    for shard in build(tmp_path).shards("web")[3:]:
        (tmp_path / f"{shard.path}.bin").unlink()
    # This rank never needs scatter 3.
    list(islice(make_loader(tmp_path, scatters=4, batch_size=16, rank=0, world=2), 30))
    with pytest.raises(UserError, match=r"a batch of 18 samples.*16 and 20"):
        make_loader(tmp_path, scatters=4, batch_size=18, rank=0, world=2)


def test_datasets_of_different_tokenizers(directory: Path, tmp_path: Path) -> None:
    made = build(tmp_path, seed=1)
    write_manifest(tmp_path, replace(made, tokenizer=replace(made.tokenizer, sha256="f" * 64)))
    streams = [stream for one in (directory, tmp_path) for stream in streams_of(Dataset.open(one))]
    both = Sampler(streams, seed=1, num_scatters=1, window=GLM)
    told = f"{directory} was made with tokenizer bytes:.* 00000000….* and {tmp_path} with bytes:"
    with pytest.raises(UserError, match=told):
        Loader(both, batch_size=4)


@pytest.mark.parametrize(("window", "kind"), [(CAUSAL, "causal"), (glm_windows(128), "glm")])
def test_blanks_that_do_not_fit_the_windows(directory: Path, window: WindowSpec, kind: str) -> None:
    with pytest.raises(UserError, match=f"64 positions cannot be made in {kind} windows of"):
        make_loader(directory, window, blanks=maker(positions=64))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Lightning warns about everything that it does not recognise
def test_lightning(directory: Path, tmp_path: Path) -> None:
    lightning = pytest.importorskip("pytorch_lightning", reason="needs pytorch-lightning")

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.model = nn.Sequential(nn.Embedding(SIZE, 8), nn.Linear(8, SIZE))
            self.losses: list[float] = []

        def training_step(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            logits, mask = self.model(batch["tokens"]), batch["loss_mask"]
            loss = nn.functional.cross_entropy(logits[mask], batch["targets"][mask])
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
        # If `steps` is given, Lightning does not take one batch too many, and little is read ahead.
        loader = make_loader(directory, causal_windows(16), batch_size=8, steps=6)
        trainer.fit(model, loader, ckpt_path=checkpoint)
        return trainer, model

    _, through = fit(6)
    trainer, stopped = fit(2)
    trainer.save_checkpoint(tmp_path / "2.ckpt")
    _, resumed = fit(6, tmp_path / "2.ckpt")
    assert len(resumed.losses) == 4
    assert stopped.losses + resumed.losses == through.losses
    assert through.losses[-1] < through.losses[0]
