"""Megatron-core: GPTDataset behind torch's loader; its index is built before and only mapped."""

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from torch.utils.data import DataLoader

from tests.bench.token_data import EOS, VOCABULARY, stem

_SAMPLES = 90_000


class _Tokenizer:
    """What the dataset asks of a tokenizer."""

    eod = EOS
    pad = EOS
    vocab_size = VOCABULARY
    unique_identifiers = {"class": "bench"}  # noqa: RUF012  # a constant


def batches(dataset: Path, *, length: int, batch_size: int) -> Iterator[torch.Tensor]:
    """Yield the tokens, [batch_size, length], int64; labels, loss mask, positions beside them."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    config = GPTDatasetConfig(
        random_seed=1,
        sequence_length=length,
        blend=([str(stem(dataset))], None),
        split="1,0,0",
        path_to_cache=str(dataset / "megatron"),
        tokenizer=_Tokenizer(),
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
    )
    builder = BlendedMegatronDatasetBuilder(GPTDataset, [_SAMPLES, 0, 0], lambda: True, config)
    for batch in DataLoader(builder.build()[0], batch_size=batch_size, drop_last=True):
        yield batch["tokens"]
