"""Validation: the same windows with the same blanks each time, each counted once."""

import math
from collections.abc import Callable

from shards.progress import counted
from trainer.data import RunData, source_names
from trainer.distributed import Ranks
from trainer.engine import micro_batches
from trainer.loader import Tensors
from trainer.metrics import LossTally
from trainer.model.loss import LossSums


def evaluate(
    losses: Callable[[Tensors], LossSums],
    data: RunData,
    *,
    at_once: int,
    ranks: Ranks,
    stop: Callable[[], int] = lambda: 0,
) -> LossTally | None:
    """Return the tally of the validation windows, None without any, or if stopped.

    Args:
        losses: what the model gives of windows, without gradients.
        data: holds the windows.
        at_once: windows that a rank computes at once.
        ranks: all of them call this; each computes its part.
        stop: called between batches, with the same result on all ranks; nonzero: return None.
    """
    if data.held_out is None:
        return None
    tally = LossTally.empty(source_names(data.held_out.streams))
    size = at_once * ranks.world
    batches = data.validation(size, ranks)
    if ranks.is_first:
        total = math.ceil(len(data.held_out) / size) * size
        batches = counted("validation", batches, total=total, weight=lambda _: size, unit="windows")
    for batch in batches:
        for part in micro_batches(batch, at_once):
            tally = tally.plus(part, losses(part))
        if stop():
            return None
    return tally.summed_over(ranks)
