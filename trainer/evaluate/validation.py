"""Validation: the same windows with the same blanks each time, each counted once."""

import math
from collections.abc import Callable

from shards.progress import counted
from shards.shown import print_line
from trainer.data import RunData, source_names
from trainer.loader import Tensors
from trainer.loss_tally import LossTally
from trainer.model.loss import LossSums
from trainer.ranks import AgreedError, Ranks
from trainer.step import micro_batches


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
        at_once: windows that this rank computes at once.
        ranks: all of them call this; each computes its part.
        stop: called between batches, with the same result on all ranks; nonzero: return None.
    """
    if data.held_out is None:
        return None
    tally = LossTally.empty(source_names(data.held_out.streams))
    size = ranks.at_once(at_once)
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


def print_tally(tally: LossTally | None, name: str, ranks: Ranks) -> None:
    """Print the figures of held-out text.

    Raises:
        AgreedError: there is none.
    """
    if tally is None:
        raise AgreedError(
            "the data have no validation documents: build them with --validation 0.01."
        )
    if ranks.is_first:
        print_line(f"{name}: {tally.num_targets:,} tokens with loss")
        for figure, value in tally.figures().items():
            print_line(f"{value:10.4f}  {figure}")
