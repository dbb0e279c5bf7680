"""Measures causal windows per second of our loader and others, shuffled, each in a process.

    python -m tests.bench.loaders NAME DATASET

prints the figures of one loader as JSON. A loader yields batches of tokens as int64[BATCH_SIZE,
LENGTH], or with one more token per row.
"""

import json
import logging
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader

from shards.reader import Dataset
from shards.sampling.sampler import Sampler
from shards.sampling.streams import streams_of
from shards.sampling.windows import causal_windows
from tests.bench import token_data
from tests.bench.inputs import ROOT
from tests.bench.table import render
from tests.bench.token_data import DTYPE, EOS, VOCABULARY, stem
from trainer.loader import Loader

LENGTH, BATCH_SIZE = 2048, 32
SECONDS, ROUNDS = 4.0, 3
NUM_TOKENS = 200_000_000
MISSING = 3
"""The exit code if the loader's package is not installed."""


def measure(python: str) -> str:
    """Return the table of loaders run by an interpreter, and a line for each that is missing."""
    dataset = token_data.one_shard(NUM_TOKENS)
    rows, lines = [], []
    for name in LOADERS:
        # The first run is not counted, because some loaders write an index or a copy first.
        runs = [_run(python, name, dataset) for _ in range(ROUNDS + 1)][1:]
        wrong = [run for run in runs if isinstance(run, str)]
        if wrong:
            lines.append(f"{name} is skipped: {wrong[0]}")
            continue
        medians = (statistics.median(column) for column in zip(*runs, strict=True))
        rows.append([name, *(f"{median:,.1f}" for median in medians)])
    head = ("loader", "M tokens/s", "M tokens/CPU s", "p99 ms", "first ms")
    what = f"{ROUNDS} rounds of {SECONDS:.0f} s, {BATCH_SIZE} windows of {LENGTH}"
    return "\n".join([f"{what} of {NUM_TOKENS:,} tokens", render(head, rows), *lines])


def _run(python: str, name: str, dataset: Path) -> tuple[float, ...] | str:
    """Return the figures that a process prints last, or the reason why it prints none."""
    command = [python, "-m", "tests.bench.loaders", name, str(dataset)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode == MISSING:
        return f"no module {lines[-1]}"
    return f"it failed: {done.stderr[-200:]}" if done.returncode else tuple(json.loads(lines[-1]))


def corpusmill(dataset: Path, *, ahead: int) -> Iterator[torch.Tensor]:
    """Yield batches of trainer.loader; unless `ahead` is 0, a thread reads ahead."""
    streams = streams_of(Dataset.open(dataset))
    sampler = Sampler(streams, seed=1, num_scatters=1, window=causal_windows(LENGTH))
    for batch in Loader(sampler, batch_size=BATCH_SIZE, ahead=ahead):
        yield batch["tokens"]


def numpy_stack(dataset: Path) -> Iterator[torch.Tensor]:
    """Yield batches of the usual numpy code, not a loader: stacked slices of a memory map."""
    tokens = np.memmap(stem(dataset).with_suffix(".bin"), dtype=DTYPE, mode="r")
    order = np.random.default_rng(0).permutation((len(tokens) - 1) // LENGTH) * LENGTH
    for first in cycle(range(0, len(order) - BATCH_SIZE, BATCH_SIZE)):
        places = order[first : first + BATCH_SIZE]
        rows = np.stack([tokens[place : place + LENGTH + 1] for place in places])
        yield torch.from_numpy(rows.astype(np.int64))


def datatrove(dataset: Path) -> Iterator[torch.Tensor]:
    """Yield batches of datatrove's folder dataset, which nanotron uses, behind torch's loader."""
    from datatrove.utils.dataset import DatatroveFolderDataset  # noqa: PLC0415  optional

    folder = _linked(dataset, "datatrove", "0.ds")
    size = DTYPE.itemsize
    windows = DatatroveFolderDataset(str(folder), LENGTH, token_size=size, recursive=False)
    order = np.random.default_rng(0).permutation(len(windows)).tolist()
    for batch in DataLoader(windows, batch_size=BATCH_SIZE, sampler=order, drop_last=True):
        yield batch["input_ids"].to(torch.int64)


def litdata(dataset: Path) -> Iterator[torch.Tensor]:
    """Yield batches of litdata's TokensLoader behind litdata's data loader, shuffled by chunks."""
    import litdata as lit  # noqa: PLC0415  optional

    folder = dataset / "litdata"
    if not folder.exists():
        count = len(Dataset.open(dataset).documents())
        lit.optimize(
            partial(_read, str(dataset)),
            [range(first, min(first + 10_000, count)) for first in range(0, count, 10_000)],
            str(folder),
            chunk_bytes="64MB",
            item_loader=lit.TokensLoader(),
            num_workers=1,
            verbose=False,
        )
    windows = lit.TokensLoader(LENGTH + 1)
    blocks = lit.StreamingDataset(str(folder), item_loader=windows, shuffle=True, drop_last=True)
    for batch in lit.StreamingDataLoader(blocks, batch_size=BATCH_SIZE, num_workers=0):
        yield batch.to(torch.int64)


def _read(dataset: str, numbers: range) -> Iterator[torch.Tensor]:
    documents = Dataset.open(dataset).documents()
    for number in numbers:
        yield torch.from_numpy(np.array(documents[number], np.uint16))


class _Tokenizer:
    """The tokenizer attributes that Megatron's dataset reads."""

    eod = pad = EOS
    vocab_size = VOCABULARY
    unique_identifiers = {"class": "bench"}  # noqa: RUF012  # a constant


def megatron(dataset: Path) -> Iterator[torch.Tensor]:
    """Yield batches of Megatron's GPTDataset behind torch's loader; the index already exists."""
    from megatron.core.datasets import (  # noqa: PLC0415  optional
        blended_megatron_dataset_builder as blended,
    )
    from megatron.core.datasets.gpt_dataset import (  # noqa: PLC0415  optional
        GPTDataset,
        GPTDatasetConfig,
    )

    config = GPTDatasetConfig(
        random_seed=1,
        sequence_length=LENGTH,
        blend=([str(stem(dataset))], None),
        split="1,0,0",
        path_to_cache=str(dataset / "megatron"),
        tokenizer=_Tokenizer(),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    samples = [NUM_TOKENS // LENGTH * 9 // 10, 0, 0]
    builder = blended.BlendedMegatronDatasetBuilder(GPTDataset, samples, lambda: True, config)
    for batch in DataLoader(builder.build()[0], batch_size=BATCH_SIZE, drop_last=True):
        yield batch["tokens"]


def olmo(dataset: Path) -> Iterator[torch.Tensor]:
    """Yield batches of OLMo-core's numpy dataset of fixed lengths behind its data loader."""
    from olmo_core import data  # noqa: PLC0415  optional
    from olmo_core.data.types import NumpyDatasetDType  # noqa: PLC0415  optional

    folder = _linked(dataset, "olmo", "0.npy")
    config = data.NumpyFSLDatasetConfig(
        sequence_length=LENGTH,
        tokenizer=data.TokenizerConfig(vocab_size=VOCABULARY, eos_token_id=EOS, pad_token_id=EOS),
        paths=[str(folder / "0.npy")],
        dtype=NumpyDatasetDType.uint16,
        work_dir=str(folder),
        include_instance_metadata=False,
    )
    loader = data.NumpyDataLoaderConfig(
        global_batch_size=BATCH_SIZE * LENGTH, seed=0, work_dir=str(folder), num_workers=0
    ).build(config.build())
    loader.reshuffle(epoch=1)
    for batch in loader:
        yield batch["input_ids"]


def _linked(dataset: Path, name: str, file: str) -> Path:
    """Return a folder in which a file with a given name contains the tokens of the shard."""
    folder = dataset / name
    if not folder.exists():
        folder.mkdir()
        (folder / file).hardlink_to(stem(dataset).with_suffix(".bin"))
    return folder


LOADERS: Mapping[str, Callable[[Path], Iterator[torch.Tensor]]] = {
    "corpusmill, ahead=0": partial(corpusmill, ahead=0),
    "corpusmill": partial(corpusmill, ahead=2),
    **{each.__name__: each for each in (numpy_stack, litdata, datatrove, megatron, olmo)},
}


def main() -> int:
    """Measure one loader, and print the figures; return the exit code."""
    name, dataset = sys.argv[1:]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    start = time.perf_counter()
    batches = LOADERS[name](Path(dataset))
    try:
        next(batches)
    except ModuleNotFoundError as error:
        print(error.name)
        return MISSING
    first = time.perf_counter() - start
    seconds: list[float] = []
    cpu, start = time.process_time(), time.perf_counter()
    before = start
    for batch in batches:
        assert batch.dtype == torch.int64
        assert batch.shape[0] == BATCH_SIZE
        now = time.perf_counter()
        seconds.append(now - before)
        before = now
        if now - start > SECONDS:
            break
    tokens = len(seconds) * BATCH_SIZE * LENGTH / 1e6
    rates = tokens / (before - start), tokens / (time.process_time() - cpu)
    print(json.dumps([*rates, 1e3 * sorted(seconds)[len(seconds) * 99 // 100], 1e3 * first]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
