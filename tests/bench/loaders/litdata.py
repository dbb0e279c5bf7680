"""litdata: TokensLoader behind its own data loader, shuffled by chunks."""

import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import litdata
import numpy as np
import torch

from shards.reader import Dataset


def batches(dataset: Path, *, length: int, batch_size: int) -> Iterator[torch.Tensor]:
    """Yield [batch_size, length + 1], int64."""
    warnings.simplefilter("ignore")
    folder = dataset / "litdata"
    if not folder.exists():
        count = len(Dataset.open(dataset).documents())
        parts = [range(first, min(first + 10_000, count)) for first in range(0, count, 10_000)]
        litdata.optimize(
            partial(_read, str(dataset)),
            parts,
            str(folder),
            chunk_bytes="64MB",
            item_loader=litdata.TokensLoader(),
            num_workers=1,
            verbose=False,
        )
    blocks = litdata.StreamingDataset(
        str(folder), item_loader=litdata.TokensLoader(length + 1), shuffle=True, drop_last=True
    )
    for batch in litdata.StreamingDataLoader(blocks, batch_size=batch_size, num_workers=0):
        yield batch.to(torch.int64)


def _read(dataset: str, numbers: range) -> Iterator[torch.Tensor]:
    documents = Dataset.open(dataset).documents()
    for number in numbers:
        yield torch.from_numpy(np.array(documents[number], np.uint16))
