"""Questions to a model, of any task, and the rows of tokens that ask them.

    Part A   [CLS] text with a mask [eos]      seen by all
    Part B   sop answer                        each place predicts the next token, the last one eop

Positions of Part B stay at the mask, block positions count 1, 2 … from sop on. As in THUDM/GLM
(commit 4f61ed7, data_utils/data_utils: build_input_from_ids). A causal model gets the text and the
answer in one, without marks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


class LazyRows(Sequence[Row]):
    """Rows that are made when they are asked for: tasks have millions, and each takes 33 n bytes.

    What makes one may hold its tokens as int32 (`partial(blank_row, …)`).
    """

    def __init__(self, makers: Sequence[Callable[[], Row]]) -> None:
        """Keep what makes each row."""
        self._makers = makers

    def __len__(self) -> int:
        return len(self._makers)

    def __getitem__(self, index: int) -> Row:  # type: ignore[override]  # there are no slices
        return self._makers[index]()


def blank_row(
    context: ArrayLike,
    *,
    mask_at: int,
    sop: int,
    answer: ArrayLike,
    padding: tuple[int, int] = (0, 0),
) -> Row:
    """Return the row that asks for the answer to a blank.

    Args:
        context: Part A, with [CLS] and what ends it.
        mask_at: where its mask stands.
        sop: the token that begins an answer.
        answer: what is predicted, with the token that ends it; none: Part B is sop alone.
        padding: a token, and how often it follows Part A, seen as if it were text.
    """
    pad, num_pads = padding
    part_a = np.pad(np.asarray(context, np.int64), (0, num_pads), constant_values=pad)
    targets = np.asarray(answer, np.int64)
    sep, size = len(part_a), max(1, len(targets))
    positions = np.full((2, sep + size), mask_at, np.int64)
    positions[0, :sep] = np.arange(sep)
    positions[1, :sep] = 0
    positions[1, sep:] = np.arange(1, size + 1)
    tokens = np.concatenate([part_a, [sop], targets[:-1]])
    return _with_targets(tokens, targets, position_ids=positions, sep=sep)


def causal_row(context: ArrayLike, answer: ArrayLike) -> Row:
    """Return the row in which a causal model predicts an answer after a context of 1 or more."""
    targets = np.asarray(answer, np.int64)
    tokens = np.concatenate([np.asarray(context, np.int64), targets[:-1]])
    return _with_targets(tokens, targets, position_ids=None, sep=None)


def _with_targets(
    tokens: Integers, answer: Integers, *, position_ids: Integers | None, sep: int | None
) -> Row:
    """Return a row whose last places predict the answer."""
    targets = np.zeros(len(tokens), np.int64)
    first = len(tokens) - len(answer)
    targets[first:] = answer
    return Row(
        tokens=tokens,
        position_ids=position_ids,
        sep=sep,
        targets=targets,
        loss_mask=np.arange(len(tokens)) >= first,
    )


Answer = int | str
"""The number of a choice or word, 1 or 0 for an answer that is the most probable or not, or the
text that was written."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Example:
    """A question and how it is answered.

    `rows` and `words` say of which kind it is:

        a row per choice                     the most probable row is the answer
        one row, the ids of words in `words` the most probable word after the row is the answer
        one row, no words                    all targets must be the most probable ones; or, where
                                             the task's answers are written, a decoder writes on
    """

    guid: str
    """Unique in its file, such as dev-3."""
    idx: Any
    """What the file calls it, for predictions."""
    rows: Sequence[Row] = ()
    """They may be made when they are asked for (`LazyRows`)."""
    words: tuple[int, ...] = ()
    """The ids of the verbalizers, by label."""
    label: int | None = None
    """The number of the right choice or word; None: not known, or there are none."""
    num_shortened: int = 0
    """Of its rows, those that were too long, with text cut away that its pattern lets go."""
    facts: Mapping[str, Any] | None = None
    """What its task needs for metrics and predictions: a question's number, answers."""


def rows_of(questions: Sequence[Example]) -> list[Row]:
    """Return the rows of all questions in their order."""
    return [row for question in questions for row in question.rows]
