"""Validation: the same windows with the same blanks each time, each counted once.

    python -m trainer.evaluate --resume RUN, with the flags of the run

prints the loss and token accuracy of the newest checkpoint: in total, by objective, by source.
`python -m trainer.evaluate MODEL --task NAME=FILE` is in `examine`.
"""

import sys
from collections.abc import Callable, Sequence

from shards.errors import UserError
from shards.shown import print_line
from trainer.command import run_command, run_on_ranks
from trainer.config import Config
from trainer.data import RunData, source_names
from trainer.examine import examine, parse_examination
from trainer.loss_tally import LossTally
from trainer.ranks import Ranks
from trainer.start import start
from trainer.step import Stepper


def evaluate(
    stepper: Stepper, data: RunData, *, ranks: Ranks, stop: Callable[[], int] = lambda: 0
) -> LossTally | None:
    """Return the tally of the validation windows, None without any, or if stopped.

    Args:
        stepper: holds the model.
        data: holds the windows.
        ranks: all of them call this; each computes its part.
        stop: called between batches, with the same result on all ranks; nonzero: return None.
    """
    if data.held_out is None:
        return None
    tally = LossTally.empty(source_names(data.held_out.streams))
    for batch in data.validation(stepper.micro_batch * ranks.world, ranks):
        tally = stepper.evaluate(batch, tally)
        if stop():
            return None
    return tally.summed_over(ranks)


def evaluate_checkpoint(config: Config, ranks: Ranks) -> int:
    """Print the figures of a checkpoint and return the exit code.

    Raises:
        UserError: the data have no validation documents.
    """
    started = start(config, ranks)
    tally = evaluate(started.stepper, started.data, ranks=ranks)
    if tally is None:
        raise UserError("the data have no validation documents: build them with --validation 0.01.")
    if ranks.is_first:
        print_line(f"step {started.step:,}: {tally.num_targets:,} tokens with loss")
        for name, value in tally.figures().items():
            print_line(f"{value:10.4f}  {name}")
    return 0


def is_of_run(argv: Sequence[str]) -> bool:
    """Return whether a command line has the flags of a run: it says where its weights are."""
    flags = {word.partition("=")[0] for word in argv}
    return not flags.isdisjoint({"--resume", "--save", "--init-from"})


if __name__ == "__main__":
    if is_of_run(sys.argv[1:]):
        run_command("trainer.evaluate", evaluate_checkpoint)
    run_on_ranks("trainer.evaluate", parse_examination, examine)
