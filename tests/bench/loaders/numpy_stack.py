"""numpy as it is mostly written: slices of a mapped array, stacked. It is no loader."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
import torch

from tests.bench.token_data import DTYPE, stem


def batches(dataset: Path, *, length: int, batch_size: int) -> Iterator[torch.Tensor]:
    """Yield [batch_size, length + 1], int64."""
    tokens = np.memmap(stem(dataset).with_suffix(".bin"), dtype=DTYPE, mode="r")
    order = np.random.default_rng(0).permutation((len(tokens) - 1) // length) * length
    for first in cycle(range(0, len(order) - batch_size, batch_size)):
        places = order[first : first + batch_size]
        rows = np.stack([tokens[place : place + length + 1] for place in places])
        yield torch.from_numpy(rows.astype(np.int64))
