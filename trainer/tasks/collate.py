"""Collates rows into batches of tensors.

Several rows may share a line of a batch, without seeing each other:

    Part A of the first row, the second, … | Part B of the first row, the second, … | padding

Each token has the same position as if its row had a separate line, and `pieces` gives the row of
each token, so the loss of a row does not depend on the other rows. A causal row has only Part B.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.tasks.rows import Row


def collate(
    lines: Sequence[Sequence[Row]], *, pad: int, isolate: bool = False
) -> dict[str, Tensor]:
    """Return rows as a batch for `GLM.forward`, as wide as the longest line.

    The batch has tokens int64[b, n], targets int64[b, n], loss_mask bool[b, n], lengths int64[b]
    and, for blanks, position_ids int64[b, 2, n] and sep int64[b]. All rows must be of one kind.

    Args:
        lines: the rows of each line.
        pad: the padding token.
        isolate: whether lines may have several rows; the batch then also has pieces int64[b, n],
            -1 in the padding.
    """
    sizes = [sum(map(len, line)) for line in lines]

    def stacked(name: str, fill: int) -> Tensor:
        arrays = [_in_parts(line, [getattr(row, name) for row in line]) for line in lines]
        return torch.from_numpy(_filled(arrays, max(sizes), fill))

    batch = {
        "tokens": stacked("tokens", pad),
        "targets": stacked("targets", 0),
        "loss_mask": stacked("loss_mask", 0),
        "lengths": torch.tensor(sizes),
    }
    if isolate or lines[0][0].mask_at is not None:
        batch["position_ids"] = stacked("position_ids", 0)
        batch["sep"] = torch.tensor([sum(row.sep for row in line) for line in lines])
    if isolate:
        numbers = [[np.full(len(row), i) for i, row in enumerate(line)] for line in lines]
        pieces = [_in_parts(*pair) for pair in zip(lines, numbers, strict=True)]
        batch["pieces"] = torch.from_numpy(_filled(pieces, max(sizes), -1))
    return batch


def pack(rows: Sequence[Row]) -> list[list[Row]]:
    """Return lines of rows, none longer than the longest row, filled by first fit."""
    width = max(map(len, rows), default=0)
    lines: list[list[Row]] = []
    for row in rows:
        room = (line for line in lines if sum(map(len, line)) + len(row) <= width)
        line = next(room, None)
        if line is None:
            lines.append([row])
        else:
            line.append(row)
    return lines


def to_device(batch: Mapping[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    """Return a batch, copied to a device."""
    return {name: tensor.to(device) for name, tensor in batch.items()}


def _in_parts(line: Sequence[Row], arrays: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
    """Return the joined arrays [..., n] of a line's rows: all Parts A first, then all Parts B."""
    halves = [np.split(array, [row.sep], -1) for array, row in zip(arrays, line, strict=True)]
    return np.concatenate([half[part] for part in range(2) for half in halves], axis=-1)


def _filled(arrays: Sequence[NDArray[np.generic]], width: int, fill: int) -> NDArray[np.generic]:
    """Return a stack of arrays [..., n], whose last axes are padded to a width."""
    stacked = np.full((len(arrays), *arrays[0].shape[:-1], width), fill, arrays[0].dtype)
    for row, array in zip(stacked, arrays, strict=True):
        row[..., : array.shape[-1]] = array
    return stacked
