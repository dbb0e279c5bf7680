"""Examples of any task, and their rows of tokens for a model.

    Part A   [CLS] text with a mask [eos]      all tokens see it
    Part B   sop answer                        each token predicts the next, the last predicts eop

In Part B, positions stay at the mask, and block positions are 1, 2 …, where 1 is sop. This follows
THUDM/GLM (commit 4f61ed7, data_utils/data_utils: build_input_from_ids). A row for a causal model is
the text followed by the answer, without special tokens between them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Row:
    """A row of n tokens.

    A task may have millions of rows, so a row keeps only its own values, and makes the arrays for
    the model when they are needed.
    """

    def __init__(
        self,
        context: Sequence[int],
        answer: Sequence[int],
        *,
        mask_at: int | None = None,
        sop: int = 0,
        padding: tuple[int, int] = (0, 0),
        was_cut: bool = False,
    ) -> None:
        """Make the row of a context and its answer.

        Args:
            context: Part A from [CLS] to its last token; for a causal row, the text with at least
                one token.
            answer: the tokens to predict, including the token that ends the answer. If there are
                none, Part B is only sop.
            mask_at: the index of the mask; None if the row is causal, so that it has no Part A.
            sop: the token that begins an answer.
            padding: a token, and the number of times that the token follows Part A, where it is
                visible like text.
            was_cut: whether the pattern was cut because it was too long.
        """
        self._context, self.answer = np.array(context, np.int32), np.array(answer, np.int32)
        self.mask_at, self._sop, self._padding = mask_at, sop, padding
        self.was_cut = was_cut

    def __len__(self) -> int:
        return self.sep + len(self._part_b) + max(0, len(self.answer) - 1)

    @property
    def sep(self) -> int:
        """The number of tokens of Part A; 0 if the row is causal."""
        return 0 if self.mask_at is None else len(self._context) + self._padding[1]

    @property
    def prompt(self) -> list[int]:
        """The tokens that are read before the first token of the answer."""
        pad, count = self._padding
        part_a = [] if self.mask_at is None else [*self._context.tolist(), *[pad] * count]
        return [*part_a, *self._part_b]

    @property
    def _part_b(self) -> Sequence[int]:
        """The tokens of Part B that are read before the first token of the answer."""
        return self._context.tolist() if self.mask_at is None else (self._sop,)

    @property
    def tokens(self) -> Integers:
        """All tokens that the model reads, int64[n]."""
        return np.array([*self.prompt, *self.answer[:-1].tolist()], np.int64)

    @property
    def position_ids(self) -> Integers:
        """Positions and block positions, int64[2, n]."""
        positions = np.stack([np.arange(len(self)), np.zeros(len(self), np.int64)])
        if self.mask_at is not None:
            positions[0, self.sep :] = self.mask_at
            positions[1, self.sep :] = np.arange(1, len(self) - self.sep + 1)
        return positions

    @property
    def targets(self) -> Integers:
        """The tokens to predict, int64[n]; 0 at a token that predicts none."""
        return np.pad(self.answer.astype(np.int64), (len(self) - len(self.answer), 0))

    @property
    def loss_mask(self) -> NDArray[np.bool_]:
        """Whether each token predicts a token, bool[n]."""
        return np.arange(len(self)) >= len(self) - len(self.answer)


Answer = int | str
"""The number of a choice or word; 1 or 0, for whether an answer is the most probable text; or a
generated text."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Example:
    """A question to a model, and the answer.

    There are three kinds:

        one row per choice       the most probable row is the answer
        one row and `words`      the most probable word after the row is the answer
        one row without `words`  all targets must be the most probable tokens; or, if the task's
                                 answers are generated, the model continues the row
    """

    guid: str
    """The name of the example, unique in its file, such as dev-3."""
    idx: Any
    """The name of the item in the file, for predictions."""
    rows: Sequence[Row] = ()
    words: tuple[int, ...] = ()
    """The ids of the verbalizers, in the order of the labels."""
    label: int | None = None
    """The number of the right choice or word; None if it is not known, or if there are no
    choices."""
    facts: Mapping[str, Any] | None = None
    """Further values that the task needs for metrics and predictions, such as right answers."""

    @property
    def num_cut(self) -> int:
        """The number of rows that were cut."""
        return sum(row.was_cut for row in self.rows)


def rows_of(examples: Sequence[Example]) -> list[Row]:
    """Return the rows of all examples, in their order."""
    return [row for example in examples for row in example.rows]
