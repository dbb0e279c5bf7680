"""An exam: what a task's file asks of a model as it is, and what its answers are worth.

    exam.row(i)             made when it is asked, so that a large file needs little memory
    sit(exam, answer, …)    every rank answers its share of the batches
    exam.figures(answers)   {"acc": 0.3125, …}

Batches are the same on any number of ranks, and so are the figures, to the last bit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.model.loss import LossSums
from trainer.ranks import Ranks
from trainer.tasks.rows import Row, collate

BATCH_TOKENS = 8192
"""Of a batch, with its padding, unless a row alone is longer."""


Ask = Callable[[dict[str, Tensor]], LossSums]
"""What a model makes of a batch, without gradients."""


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


def sit(
    exam: Exam,
    answer: Ask,
    *,
    ranks: Ranks,
    batch_tokens: int = BATCH_TOKENS,
    stop: Callable[[], int] = lambda: 0,
) -> dict[str, float] | None:
    """Return the figures of an exam, the same on all ranks; None if stopped.

    Args:
        exam: the same on all ranks.
        answer: all ranks call it equally often: at ZeRO stage 3 they lend each other the weights.
        ranks: all of them call this.
        batch_tokens: tokens of a batch.
        stop: called after each batch, with the same result on all ranks; nonzero: return None.
    """
    batches = _batches(exam.sizes, batch_tokens)
    sums = torch.zeros(3, len(exam.sizes), dtype=torch.float64)
    for turn in range(-(-len(batches) // ranks.world)):
        number = turn * ranks.world + ranks.rank
        numbers = batches[min(number, len(batches) - 1)]
        columns = answer(collate([exam.row(i) for i in numbers], pad=exam.pad))
        if number < len(batches):
            sums[:, numbers] = torch.stack([column.double() for column in columns]).cpu()
        if stop():
            return None
    loss, correct, targets = ranks.sum(sums).numpy()
    return exam.figures(
        Answers(
            log_probability=-loss,
            num_correct=correct.astype(np.int64),
            num_targets=targets.astype(np.int64),
        )
    )


def _batches(sizes: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Return the numbers of the rows of each batch, the longest rows first."""
    batches: list[list[int]] = []
    room = 0
    for number in np.argsort(-np.asarray(sizes), kind="stable").tolist():
        if room == 0:
            batches.append([])
            room = max(1, batch_tokens // max(1, sizes[number]))
        batches[-1].append(number)
        room -= 1
    return batches
