"""trainer.loader as anyone uses it: reads ahead in a thread."""

from collections.abc import Iterator
from pathlib import Path

import torch

from shards.order.sampler import Sampler
from shards.order.streams import streams_of
from shards.reader import Dataset
from shards.windows import causal_windows
from trainer.loader import Loader


def batches(
    dataset: Path, *, length: int, batch_size: int, ahead: int = 2
) -> Iterator[torch.Tensor]:
    """Yield the tokens, [batch_size, length], int64; targets and loss mask come beside them."""
    streams = streams_of(Dataset.open(dataset))
    sampler = Sampler(streams, seed=1, num_scatters=1, window=causal_windows(length))
    for batch in Loader(sampler, batch_size=batch_size, ahead=ahead):
        yield batch["tokens"]
