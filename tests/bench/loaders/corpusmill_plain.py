"""trainer.loader without its thread, so that one thread does everything, as in the others."""

from collections.abc import Iterator
from pathlib import Path

import torch

from tests.bench.loaders import corpusmill


def batches(dataset: Path, *, length: int, batch_size: int) -> Iterator[torch.Tensor]:
    """Yield as `corpusmill` does."""
    return corpusmill.batches(dataset, length=length, batch_size=batch_size, ahead=0)
