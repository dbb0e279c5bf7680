"""The command `python -m trainer.evaluate`: a checkpoint of a run is evaluated, or a model.

    python -m trainer.evaluate --resume RUN, with the flags of the run

prints the loss and token accuracy of the newest checkpoint: in total, by objective, by source; and
what its --eval-task give.
The same of a model alone, whose checkpoint says all that, and of tasks:

    python -m trainer.evaluate MODEL [--data DIR] [--task NAME=FILE]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from shards.command import run_command
from shards.interrupt import ended_by_interrupt
from trainer.config import Config, config_of
from trainer.examining import OF_RUNS, Examination
from trainer.settings import Settings

if TYPE_CHECKING:
    from trainer.ranks import Ranks


def main(module: str, words: Sequence[str]) -> int:
    """Evaluate what a command line names and return the exit code."""
    flags = {word.partition("=")[0] for word in words}
    command = EvaluateModel if flags.isdisjoint(OF_RUNS) else EvaluateRun
    return run_command(command, words, program=f"python -m {module}")


@dataclass(frozen=True, kw_only=True)
class EvaluateRun(Settings):
    """Evaluate a checkpoint of a run."""

    PROGRAM = "trainer.evaluate"

    def prepared(self, *, world: int) -> Config:
        """Return the run."""
        return config_of(self, world=world)

    def work(self, asked: Config, ranks: "Ranks") -> int:
        """Print the figures."""
        with ended_by_interrupt():
            from trainer.evaluate.validation import evaluate_checkpoint  # noqa: PLC0415  loads torch
        return evaluate_checkpoint(asked, ranks)


@dataclass(frozen=True, kw_only=True)
class EvaluateModel(Examination):
    """Evaluate a trained model."""

    def prepared(self, *, world: int) -> Self:  # noqa: ARG002
        """Return what is asked."""
        return self

    def work(self, asked: Examination, ranks: "Ranks") -> int:
        """Print the figures."""
        with ended_by_interrupt():
            from trainer.evaluate.validation import evaluate_model  # noqa: PLC0415  as above
        return evaluate_model(asked, ranks)
