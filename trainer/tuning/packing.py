"""Several questions in one row, which do not see each other.

    Part A of the first, of the second, … | Part B of the first, of the second, … | padding

Each token keeps the position that it has in a row of its own, and `pieces` says whose it is, so a
question loses what it loses alone. A causal row is all Part B.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.tasks.rows import Row, collate

_PADDING = -1
"""The piece of what fills a row up."""


def packed(rows: Sequence[Row], *, pad: int) -> dict[str, Tensor]:
    """Return rows as a batch of fewer ones, none longer than the longest of them.

    It has what `collate` returns, and pieces int64[b, n].
    """
    width = max(map(len, rows))
    groups = _first_fit(rows, width)
    batch = collate([_joined(group) for group in groups], pad=pad)
    pieces = np.full((len(groups), width), _PADDING, np.int64)
    for line, group in zip(pieces, groups, strict=True):
        owners = _owners(group)
        line[: len(owners)] = owners
    batch["pieces"] = torch.from_numpy(pieces)
    return batch


def _first_fit(rows: Sequence[Row], width: int) -> list[list[Row]]:
    """Return rows in groups; each joins the first that has room."""
    groups: list[list[Row]] = []
    for row in rows:
        for group in groups:
            if sum(map(len, group)) + len(row) <= width:
                group.append(row)
                break
        else:
            groups.append([row])
    return groups


def _joined(group: Sequence[Row]) -> Row:
    """Return rows as one, all Parts A before all Parts B."""
    return Row(
        tokens=_in_parts(group, [row.tokens for row in group]),
        position_ids=_in_parts(group, [_positions(row) for row in group]),
        sep=sum(row.sep or 0 for row in group),
        targets=_in_parts(group, [row.targets for row in group]),
        loss_mask=_in_parts(group, [row.loss_mask for row in group]).astype(np.bool_),
    )


def _owners(group: Sequence[Row]) -> NDArray[np.int64]:
    """Return the number of the row that each token of a joined row comes from."""
    numbers = [np.full(len(row), i, np.int64) for i, row in enumerate(group)]
    return _in_parts(group, numbers).astype(np.int64)


def _in_parts(group: Sequence[Row], arrays: Sequence[NDArray[np.generic]]) -> NDArray[np.int64]:
    """Return arrays [..., n] of rows joined: of each what belongs to Part A, then the rest."""
    seps = [row.sep or 0 for row in group]
    firsts = [array[..., :sep] for array, sep in zip(arrays, seps, strict=True)]
    seconds = [array[..., sep:] for array, sep in zip(arrays, seps, strict=True)]
    return np.concatenate([*firsts, *seconds], axis=-1).astype(np.int64)


def _positions(row: Row) -> NDArray[np.int64]:
    """Return a row's positions, int64[2, n]; a causal one counts from 0."""
    if row.position_ids is not None:
        return row.position_ids
    return np.stack([np.arange(len(row)), np.zeros(len(row), np.int64)])
