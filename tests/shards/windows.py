"""Reads a single window, minus the padding."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from shards.reader import Shard
from shards.sampling.batch import read_batch


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    tokens: np.ndarray
    targets: np.ndarray | None
    loss_mask: np.ndarray
    span_starts: np.ndarray
    span_rows: np.ndarray


def read_window(shard: Shard, window: int, *, phase: int = 0, **settings: Any) -> Window:
    batch = read_batch([shard], [window], phases=[phase], **settings, boundaries=True)
    length = int(batch.lengths[0])
    assert batch.spans is not None
    return Window(
        tokens=batch.tokens[0, :length],
        targets=None if batch.targets is None else batch.targets[0, :length],
        loss_mask=batch.loss_mask[0, :length],
        span_starts=batch.spans.starts,
        span_rows=batch.spans.rows,
    )
