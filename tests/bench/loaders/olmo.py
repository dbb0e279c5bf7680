"""OLMo-core: its numpy dataset of fixed lengths behind its own data loader, shuffled."""

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
from olmo_core.data import NumpyDataLoaderConfig, NumpyFSLDatasetConfig, TokenizerConfig
from olmo_core.data.types import NumpyDatasetDType

from tests.bench.token_data import EOS, VOCABULARY, stem


def batches(dataset: Path, *, length: int, batch_size: int) -> Iterator[torch.Tensor]:
    """Yield [batch_size, length], int64."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    folder = dataset / "olmo"
    if not folder.exists():
        folder.mkdir()
        (folder / "0.npy").hardlink_to(stem(dataset).with_suffix(".bin"))
    config = NumpyFSLDatasetConfig(
        sequence_length=length,
        tokenizer=TokenizerConfig(vocab_size=VOCABULARY, eos_token_id=EOS, pad_token_id=EOS),
        paths=[str(folder / "0.npy")],
        dtype=NumpyDatasetDType.uint16,
        work_dir=str(folder),
        include_instance_metadata=False,
    )
    loader = NumpyDataLoaderConfig(
        global_batch_size=batch_size * length, seed=0, work_dir=str(folder), num_workers=0
    ).build(config.build())
    loader.reshuffle(epoch=1)
    for batch in loader:
        yield batch["input_ids"]
