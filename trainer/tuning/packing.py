"""Several questions in one row, which do not see each other.

    Part A of the first, of the second, … | Part B of the first, of the second, … | padding

Each token keeps the position that it has in a row of its own, and `pieces` says whose it is, so a
question loses what it loses alone. A causal row is all Part B.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.tasks.collate import collate
from trainer.tasks.rows import Row

PADDING = -1
"""The piece of what fills a row up."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Packed:
    """A row that holds several."""

    row: Row
    pieces: NDArray[np.int64]
    """int64[n], the number of the row that each token comes from."""


def packed(rows: Sequence[Row]) -> list[Packed]:
    """Return rows as fewer ones, none longer than the longest of them."""
    width = max(map(len, rows))
    return [_joined(group) for group in _first_fit(rows, width)]


def collate_packed(several: Sequence[Packed], *, pad: int) -> dict[str, Tensor]:
    """Return packed rows as a batch: what `collate` returns, and pieces int64[b, n]."""
    batch = collate([one.row for one in several], pad=pad)
    pieces = torch.full_like(batch["tokens"], PADDING)
    for line, one in zip(pieces, several, strict=True):
        line[: len(one.pieces)] = torch.from_numpy(one.pieces)
    return {**batch, "pieces": pieces}


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


def _joined(group: Sequence[Row]) -> Packed:
    """Return rows as one, all Parts A before all Parts B."""
    numbers = [np.full(len(row), i, np.int64) for i, row in enumerate(group)]
    row = Row(
        tokens=_in_parts(group, [row.tokens for row in group]),
        position_ids=_in_parts(group, [_positions(row) for row in group]),
        sep=sum(row.sep or 0 for row in group),
        targets=_in_parts(group, [row.targets for row in group]),
        loss_mask=_in_parts(group, [row.loss_mask for row in group]).astype(np.bool_),
    )
    return Packed(row=row, pieces=_in_parts(group, numbers))


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
