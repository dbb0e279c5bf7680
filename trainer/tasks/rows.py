"""Rows of tokens that ask something of a model.

    Part A   [CLS] text with a mask [eos]      seen by all
    Part B   sop answer                        each place predicts the next token, the last one eop

Positions of Part B stay at the mask, block positions count 1, 2 … from sop on. As in THUDM/GLM
(commit 4f61ed7, data_utils/data_utils: build_input_from_ids). A causal model gets the text and the
answer in one, without marks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """A row of n tokens, without padding."""

    tokens: Integers
    """int64[n]."""
    position_ids: Integers | None
    """int64[2, n], positions and block positions; None: causal."""
    sep: int | None
    """The number of tokens of Part A; None: causal."""
    targets: Integers
    """int64[n]; 0 where nothing is predicted."""
    loss_mask: NDArray[np.bool_]
    """bool[n]: where a token is predicted."""
    pieces: Integers | None = None
    """int64[n], whose each token is, where several share the row and do not see each other."""

    def __len__(self) -> int:
        return len(self.tokens)


def blank_row(context: Sequence[int], *, mask_at: int, sop: int, answer: Sequence[int]) -> Row:
    """Return the row that asks for the answer to a blank.

    Args:
        context: Part A, with [CLS] and what ends it.
        mask_at: where its mask stands.
        sop: the token that begins an answer.
        answer: what is predicted, with the token that ends it; none: Part B is sop alone.
    """
    sep, size = len(context), max(1, len(answer))
    tokens = np.array([*context, sop, *answer[:-1]], np.int64)
    positions = np.full((2, sep + size), mask_at, np.int64)
    positions[0, :sep] = np.arange(sep)
    positions[1, :sep] = 0
    positions[1, sep:] = np.arange(1, size + 1)
    return _with_targets(tokens, answer, position_ids=positions, sep=sep)


@dataclass(frozen=True, kw_only=True, eq=False)
class Blank:
    """What a row of a blank is made of: a tenth of its bytes, for tasks of millions of items."""

    context: NDArray[np.int32]
    """Part A without padding."""
    mask_at: int
    sop: int
    answer: NDArray[np.int32]
    padding: int = 0
    """Tokens between the context and sop, which are seen as if they were text."""
    pad: int = 0

    @classmethod
    def of(
        cls, context: Sequence[int], *, mask_at: int, sop: int, answer: Sequence[int]
    ) -> "Blank":
        """Return the blank of a row as `blank_row` makes it."""
        return cls(
            context=np.array(context, np.int32),
            mask_at=mask_at,
            sop=sop,
            answer=np.array(answer, np.int32),
        )

    def row(self) -> Row:
        """Return the row."""
        context = [*self.context.tolist(), *[self.pad] * self.padding]
        answer = self.answer.tolist()
        return blank_row(context, mask_at=self.mask_at, sop=self.sop, answer=answer)


class BlankRows(Sequence[Row]):
    """Rows of blanks, each made when it is asked for."""

    def __init__(self, blanks: Sequence[Blank]) -> None:
        """Keep what rows are made of."""
        self._blanks = tuple(blanks)

    def __len__(self) -> int:
        return len(self._blanks)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> "BlankRows": ...

    def __getitem__(self, index: int | slice) -> "Row | BlankRows":
        if isinstance(index, slice):
            return BlankRows(self._blanks[index])
        return self._blanks[index].row()


def causal_row(context: Sequence[int], answer: Sequence[int]) -> Row:
    """Return the row in which a causal model predicts an answer after a context of 1 or more."""
    tokens = np.array([*context, *answer[:-1]], np.int64)
    return _with_targets(tokens, answer, position_ids=None, sep=None)


def _with_targets(
    tokens: Integers, answer: Sequence[int], *, position_ids: Integers | None, sep: int | None
) -> Row:
    """Return a row whose last places predict the answer."""
    targets = np.zeros(len(tokens), np.int64)
    loss_mask = np.zeros(len(tokens), np.bool_)
    if len(answer):
        targets[-len(answer) :] = answer
        loss_mask[-len(answer) :] = True
    return Row(
        tokens=tokens, position_ids=position_ids, sep=sep, targets=targets, loss_mask=loss_mask
    )
