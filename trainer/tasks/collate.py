"""Batches of rows, as tensors."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.tasks.rows import Row


def collate(rows: Sequence[Row], *, pad: int) -> dict[str, Tensor]:
    """Return rows as a batch for `GLM.forward`, as wide as the longest of them.

    It has tokens int64[b, n], targets int64[b, n], loss_mask bool[b, n], lengths int64[b], and
    for blanks position_ids int64[b, 2, n] and sep int64[b]; where rows are shared pieces
    int64[b, n], -1 in the padding. All rows are of one kind.
    """
    width = max(map(len, rows))
    batch: dict[str, Tensor] = {
        "tokens": _stacked([row.tokens for row in rows], width, fill=pad),
        "targets": _stacked([row.targets for row in rows], width, fill=0),
        "loss_mask": _stacked([row.loss_mask for row in rows], width, fill=0),
        "lengths": torch.tensor([len(row) for row in rows]),
    }
    positions = [row.position_ids for row in rows if row.position_ids is not None]
    if positions:
        batch["position_ids"] = _stacked(positions, width, fill=0)
        batch["sep"] = torch.tensor([row.sep for row in rows])
    pieces = [row.pieces for row in rows if row.pieces is not None]
    if pieces:
        batch["pieces"] = _stacked(pieces, width, fill=-1)
    return batch


def placed(batch: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    """Return a batch on a device."""
    return {name: tensor.to(device) for name, tensor in batch.items()}


def _stacked(arrays: Sequence[NDArray[np.generic]], width: int, *, fill: int) -> Tensor:
    """Return arrays [..., n] with their last axis filled up to a width, as one tensor."""
    shape = (len(arrays), *arrays[0].shape[:-1], width)
    stacked = np.full(shape, fill, arrays[0].dtype)
    for row, array in zip(stacked, arrays, strict=True):
        row[..., : array.shape[-1]] = array
    return torch.from_numpy(stacked)
