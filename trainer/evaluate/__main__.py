"""Evaluates a checkpoint of a run, or a model.

    python -m trainer.evaluate --resume RUN, with the flags of the run

prints the loss and token accuracy of the newest checkpoint: in total, by objective, by source; and
what its --eval-task give.
The same of a model alone, whose checkpoint says all that, and of tasks:

    python -m trainer.evaluate MODEL [--data DIR] [--task NAME=FILE]
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shards.interrupt import ended_by_interrupt
from trainer.command import run_command, run_on_ranks
from trainer.config import Config
from trainer.examining import OF_RUNS, Examination, parse_examination

if TYPE_CHECKING:
    from trainer.ranks import Ranks


def is_of_run(argv: Sequence[str]) -> bool:
    """Return whether a command line has the flags of a run: it says where its weights are."""
    flags = {word.partition("=")[0] for word in argv}
    return not flags.isdisjoint(OF_RUNS)


def _evaluate_checkpoint(config: Config, ranks: "Ranks") -> int:
    with ended_by_interrupt():
        from trainer.evaluate.validation import (  # noqa: PLC0415  loads torch; --help needs none
            evaluate_checkpoint,
        )
    return evaluate_checkpoint(config, ranks)


def _evaluate_model(asked: Examination, ranks: "Ranks") -> int:
    with ended_by_interrupt():
        from trainer.evaluate.validation import evaluate_model  # noqa: PLC0415  as above
    return evaluate_model(asked, ranks)


if __name__ == "__main__":
    if is_of_run(sys.argv[1:]):
        run_command("trainer.evaluate", _evaluate_checkpoint)
    run_on_ranks("trainer.evaluate", parse_examination, _evaluate_model)
