import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from shards.errors import UserError
from shards.order.onepass import OnePass
from shards.order.sampler import Sampler
from shards.order.streams import streams_of
from shards.reader import Dataset
from shards.windows import WindowSpec, causal_windows, glm_windows
from tests.shards.numbered import CLS, SIZE, build
from trainer import loader as loader_module
from trainer.blanks.blanks import BlankMaker, BlankOptions
from trainer.loader import Loader, Tensors, read_once

GLM = glm_windows(64)
CAUSAL = causal_windows(33)
COMMANDS = ("mask", "smask", "gmask", "sop", "eop", "dblock")


@pytest.fixture(autouse=True)
def _read_little_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read a few batches at once, not thousands of small ones."""
    monkeypatch.setattr(loader_module, "_TOKENS_AT_ONCE", 1 << 11)


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    directory = tmp_path_factory.mktemp("numbered")
    build(directory)
    return Dataset.open(directory)


@pytest.fixture
def sampler(numbered: Dataset) -> Callable[..., Sampler]:
    def make(spec: WindowSpec = GLM, *, num_scatters: int = 4, **more: Any) -> Sampler:
        return Sampler(streams_of(numbered), seed=5, num_scatters=num_scatters, window=spec, **more)

    return make


@pytest.fixture(scope="module")
def blanks(numbered: Dataset) -> BlankMaker:
    # Ids beyond those of the text.
    special = {**numbered.manifest.tokenizer.special, **dict(zip(COMMANDS, count(SIZE)))}
    return BlankMaker(
        special,
        BlankOptions(
            short_seq_prob=0.3, single_span_prob=0.2, context_mask_ratio=0.05, random_position=True
        ),
        max_positions=64,
        sentence_ends=numbered.vocabulary.sentence_end,
        isolate=True,
    )


def first(loader: Loader, number: int) -> list[Tensors]:
    return list(islice(loader, number))


def same(left: list[Tensors], right: list[Tensors]) -> bool:
    return len(left) == len(right) and all(
        a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
        for a, b in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("spec", [GLM, CAUSAL])
@pytest.mark.parametrize("ahead", [0, 1, 9])
def test_a_run_may_have_an_end(
    sampler: Callable[..., Sampler], ahead: int, spec: WindowSpec
) -> None:
    endless = Loader(sampler(spec), batch_size=12)
    with pytest.raises(TypeError, match="no end: give steps="):
        len(endless)
    usual = first(endless, 5)
    loader = Loader(sampler(spec), batch_size=12, steps=5, ahead=ahead)
    assert len(loader) == 5
    assert same(list(loader), usual)
    assert list(loader) == []
    resumed = Loader(sampler(spec), batch_size=12, steps=5, ahead=ahead)
    resumed.load_state_dict(sampler(spec).state_dict(36))
    assert same(list(resumed), usual[3:])
    assert len(resumed) == 5


def test_the_thread_ends_with_the_loop(sampler: Callable[..., Sampler]) -> None:
    def readers() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("loader")]

    batches = iter(Loader(sampler(), batch_size=12))
    next(batches)
    assert readers()
    assert isinstance(batches, Iterator)
    batches.close()  # type: ignore[attr-defined]  # it is a generator
    assert not readers()


def test_workers_of_a_data_loader_share_the_batches(sampler: Callable[..., Sampler]) -> None:
    loader = Loader(sampler(), batch_size=12)
    loader.load_state_dict(sampler().state_dict(12))
    batches_read = list(islice(DataLoader(loader, batch_size=None, num_workers=2), 7))
    assert same(batches_read, first(Loader(sampler(), batch_size=12), 8)[1:])


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")  # torchdata calls it
@pytest.mark.parametrize("workers", [0, 2])
def test_stateful_data_loader(sampler: Callable[..., Sampler], workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="needs torchdata")
    before, after = (
        stateful.StatefulDataLoader(
            Loader(sampler(), batch_size=12), batch_size=None, num_workers=workers
        )
        for _ in range(2)
    )
    through = list(islice(before, 3))
    after.load_state_dict(before.state_dict())
    batches_read = list(islice(after, 5))
    assert same(through + batches_read, first(Loader(sampler(), batch_size=12), 8))


def test_a_batch_that_placed_shards_do_not_fit(tmp_path: Path) -> None:
    """It is told before the shards that a node then lacks."""
    for shard in build(tmp_path).shards("web")[3::4]:
        (tmp_path / f"{shard.path}.bin").unlink()
    draws = Sampler(streams_of(Dataset.open(tmp_path)), seed=1, num_scatters=4, window=GLM)
    first(Loader(draws, batch_size=16, rank=0, world=2), 30)  # it never needs scatter 3
    with pytest.raises(UserError, match=r"a batch of 18 samples.*16 and 20"):
        Loader(draws, batch_size=18, rank=0, world=2)


def test_datasets_of_different_tokenizers(numbered: Dataset, tmp_path: Path) -> None:
    build(tmp_path, sha256="f" * 64)
    streams = [*streams_of(numbered), *streams_of(Dataset.open(tmp_path))]
    both = Sampler(streams, seed=1, num_scatters=1, window=GLM)
    label = numbered.manifest.tokenizer.label
    message = f"{numbered.directory} was made with tokenizer {label} and {tmp_path} with bytes:"
    with pytest.raises(UserError, match=re.escape(message)):
        Loader(both, batch_size=4)


@pytest.mark.parametrize("boundaries", [False, True])
@pytest.mark.parametrize("spec", [GLM, causal_windows(10)])
@pytest.mark.parametrize("world", [1, 2, 4])
def test_validation_is_read_once(
    numbered: Dataset, spec: WindowSpec, world: int, boundaries: bool
) -> None:
    held = OnePass(streams_of(numbered, split="validation"), window=spec)
    ranks = [
        list(read_once(held, batch_size=8, rank=rank, world=world, boundaries=boundaries))
        for rank in range(world)
    ]
    assert len({len(batches) for batches in ranks}) == 1
    read: Counter[int] = Counter()
    for batch in (batch for batches in ranks for batch in batches):
        assert len(batch["tokens"]) == 8 // world
        inside = torch.arange(batch["tokens"].shape[1]) < batch["lengths"][:, None]
        assert not batch["loss_mask"][~inside].any()
        read.update(batch["tokens"][inside].tolist())
        if "cu_seqlens" in batch:
            assert batch["cu_seqlens"][-1] == batch["tokens"].numel()
    del read[CLS]
    documents = numbered.documents(split="validation")
    assert read == Counter(token for document in documents for token in document.tolist())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="pinned memory needs CUDA")
def test_pinned_memory(sampler: Callable[..., Sampler]) -> None:
    (pinned,) = first(Loader(sampler(CAUSAL), batch_size=8, pin_memory=True), 1)
    (usual,) = first(Loader(sampler(CAUSAL), batch_size=8), 1)
    assert all(tensor.is_pinned() for tensor in pinned.values())
    assert same([pinned], [usual])


def by_key(batches: list[Tensors]) -> dict[int, dict[str, Any]]:
    """The rows of batches without their padding, whatever rank, batch and place they are in."""
    return {
        int(batch["keys"][i]): {
            name: tensor[i, ..., : int(batch["lengths"][i])].tolist()
            if tensor.ndim > 1
            else int(tensor[i])
            for name, tensor in batch.items()
        }
        for batch in batches
        for i in range(len(batch["keys"]))
        if batch["lengths"][i]
    }


@pytest.mark.parametrize("num_scatters", [1, 4])
@pytest.mark.parametrize("world", [2, 3])
def test_blanks_are_the_same_on_any_number_of_ranks(
    sampler: Callable[..., Sampler], blanks: BlankMaker, world: int, num_scatters: int
) -> None:
    def batches(rank: int, world: int) -> list[Tensors]:
        draws = sampler(num_scatters=num_scatters)
        return first(Loader(draws, batch_size=24, rank=rank, world=world, blanks=blanks), 3)

    alone = batches(0, 1)
    shared = [batches(rank, world) for rank in range(world)]
    for step in range(3):
        assert by_key([rank[step] for rank in shared]) == by_key([alone[step]])
        assert len(by_key([alone[step]])) == 24


@pytest.mark.parametrize("world", [1, 2, 4])
def test_validation_has_the_same_blanks_each_time(
    numbered: Dataset, blanks: BlankMaker, world: int
) -> None:
    held = OnePass(streams_of(numbered, split="validation"), window=GLM)
    ranks = [
        list(read_once(held, batch_size=8, rank=rank, world=world, blanks=blanks))
        for rank in range(world)
    ]
    by_sample = by_key([batch for batches in ranks for batch in batches])
    assert len(by_sample) == len(held)
    assert by_sample == by_key(list(read_once(held, batch_size=3, blanks=blanks)))
    empty = ranks[-1][-1]
    missing = empty["lengths"] == 0
    assert missing.any()
    assert not empty["loss_mask"][missing].any()
    assert (empty["pieces"][missing] == -1).all()


@pytest.mark.parametrize(("spec", "kind"), [(CAUSAL, "causal"), (glm_windows(128), "glm")])
def test_blanks_that_do_not_fit_the_windows(
    sampler: Callable[..., Sampler], blanks: BlankMaker, spec: WindowSpec, kind: str
) -> None:
    with pytest.raises(UserError, match=f"64 positions cannot be made in {kind} windows of"):
        Loader(sampler(spec), batch_size=4, blanks=blanks)
