"""datatrove: its folder dataset, what nanotron reads with, behind torch's loader, shuffled."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from datatrove.utils.dataset import DatatroveFolderDataset
from torch.utils.data import DataLoader

from tests.bench.token_data import DTYPE, stem


def batches(dataset: Path, *, length: int, batch_size: int) -> Iterator[torch.Tensor]:
    """Yield [batch_size, length + 1], int64."""
    folder = dataset / "datatrove"
    if not folder.exists():
        folder.mkdir()
        (folder / "0.ds").hardlink_to(stem(dataset).with_suffix(".bin"))
    windows = DatatroveFolderDataset(
        str(folder), length, token_size=DTYPE.itemsize, recursive=False
    )
    order = np.random.default_rng(0).permutation(len(windows)).tolist()
    for batch in DataLoader(windows, batch_size=batch_size, sampler=order, drop_last=True):
        yield batch["input_ids"].to(torch.int64)
