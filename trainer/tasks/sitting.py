"""How exams are sat: every rank answers its share of the batches.

Batches are the same on any number of ranks, and so are the figures, to the last bit.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from trainer.model.loss import LossSums
from trainer.ranks import Ranks
from trainer.tasks.collate import collate
from trainer.tasks.exam import BATCH_TOKENS, Answers, Exam

Ask = Callable[[dict[str, Tensor]], LossSums]
"""What a model makes of a batch, without gradients."""


def sit_all(
    exams: Mapping[str, Exam],
    answer: Ask,
    *,
    ranks: Ranks,
    batch_tokens: int = BATCH_TOKENS,
    stop: Callable[[], int] = lambda: 0,
) -> dict[str, float] | None:
    """Return the figures of exams as FIGURE/NAME, as `sit` does; None if stopped."""
    figures: dict[str, float] = {}
    for name, exam in exams.items():
        own = sit(exam, answer, ranks=ranks, batch_tokens=batch_tokens, stop=stop)
        if own is None:
            return None
        figures |= {f"{figure}/{name}": value for figure, value in own.items()}
    return figures


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
