"""Examples of any task, and the rows of tokens that ask a model about them.

    Part A   [CLS] text with a mask [eos]      seen by all
    Part B   sop answer                        each place predicts the next token, the last one eop

Positions of Part B stay at the mask, block positions count 1, 2 … from sop on. As in THUDM/GLM
(commit 4f61ed7, data_utils/data_utils: build_input_from_ids). A causal model gets the text and the
answer in one, without marks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


class Row:
    """A row of n tokens.

    It keeps only what differs by row: tasks have millions of rows, and the arrays that a model
    reads are made when they are needed.
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
            context: Part A, with [CLS] and what ends it; of a causal row the text, 1 or more
                tokens.
            answer: the tokens to predict, with the one that ends them. Without any, Part B is sop
                alone.
            mask_at: where the mask is; None: the row is causal, and has no Part B.
            sop: the token that begins an answer.
            padding: a token, and how often it follows Part A, seen as if it were text.
            was_cut: whether it was too long, and lost text that its pattern lets go.
        """
        self._context, self.answer = np.array(context, np.int32), np.array(answer, np.int32)
        self.mask_at, self._sop, self._padding = mask_at, sop, padding
        self.was_cut = was_cut

    def __len__(self) -> int:
        return self.sep + len(self._part_b) + max(0, len(self.answer) - 1)

    @property
    def sep(self) -> int:
        """The number of tokens of Part A; 0: causal."""
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
        """All that is read, int64[n]."""
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
        """The tokens that are predicted, int64[n]; 0 where nothing is."""
        return np.pad(self.answer.astype(np.int64), (len(self) - len(self.answer), 0))

    @property
    def loss_mask(self) -> NDArray[np.bool_]:
        """Where a token is predicted, bool[n]."""
        return np.arange(len(self)) >= len(self) - len(self.answer)


Answer = int | str
"""The number of a choice or word, 1 or 0 for an answer that is the most probable or not, or the
text that was written."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Example:
    """A question to a model, and the answer.

    `rows` and `words` show its kind:

        a row per choice                     the most probable row is the answer
        one row, the ids of words in `words` the most probable word after the row is the answer
        one row, no words                    all targets must be the most probable ones; or, where
                                             the task's answers are written, a decoder writes on
    """

    guid: str
    """Unique in its file, such as dev-3."""
    idx: Any
    """Its name in the file, for predictions."""
    rows: Sequence[Row] = ()
    words: tuple[int, ...] = ()
    """The ids of the verbalizers, by label."""
    label: int | None = None
    """The number of the right choice or word; None: not known, or there are none."""
    facts: Mapping[str, Any] | None = None
    """Facts that its task needs for metrics and predictions: a question's number, answers."""

    @property
    def num_cut(self) -> int:
        """How many of its rows lost text that their pattern lets go."""
        return sum(row.was_cut for row in self.rows)


def rows_of(examples: Sequence[Example]) -> list[Row]:
    """Return the rows of all examples in their order."""
    return [row for example in examples for row in example.rows]
