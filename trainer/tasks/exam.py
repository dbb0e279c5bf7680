"""An exam: what a task's file asks of a model as it is, and what its answers are worth.

exam.row(i)             made when it is asked, so that a large file needs little memory
sit(exam, answer, …)    every rank answers its share of the batches (sitting.py)
exam.figures(answers)   {"acc": 0.3125, …}
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trainer.tasks.rows import Row

BATCH_TOKENS = 8192
"""Of a batch, with its padding, unless a row alone is longer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """How probable a model finds the targets of n rows."""

    log_probability: NDArray[np.float64]
    """float64[n]: in nats, the sum over a row's targets."""
    num_correct: NDArray[np.int64]
    """int64[n]: targets that are the most probable token."""
    num_targets: NDArray[np.int64]
    """int64[n]."""

    @property
    def all_correct(self) -> NDArray[np.bool_]:
        """bool[n]: every target is the most probable token."""
        is_all: NDArray[np.bool_] = self.num_correct == self.num_targets
        return is_all


class Exam(Protocol):
    """See the module."""

    @property
    def pad(self) -> int:
        """The id that fills rows up."""

    @property
    def sizes(self) -> Sequence[int]:
        """Of each row, in tokens or nearly so: rows of like size share a batch."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How much is asked: items, tokens, contexts that were cut to fit."""

    def row(self, number: int) -> Row:
        """Return a row."""

    def figures(self, answers: Answers) -> dict[str, float]:
        """Return what the answers to all rows are worth."""
