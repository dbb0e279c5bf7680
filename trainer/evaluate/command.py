"""The command `python -m trainer.evaluate`: a checkpoint of a run is evaluated, or a model.

    python -m trainer.evaluate --resume RUN, with the flags of the run

prints the loss and token accuracy of the newest checkpoint: in total, by objective, by source; and
what its --eval-task give.
The same of a model alone, whose checkpoint says all that, and of tasks:

    python -m trainer.evaluate MODEL [--data DIR] [--task NAME=FILE]
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from shards.errors import UserError
from shards.flags import WORD, count, flag_of, given, local_path, option, positive
from shards.interrupt import ended_by_interrupt
from shards.program import called
from shards.shown import print_line
from trainer.command import RankCommand
from trainer.config import Config, config_of
from trainer.opening import OPENED, Opening
from trainer.settings import Settings
from trainer.task_files import BATCH_TOKENS, GMASK, MASK, parse_tasks

if TYPE_CHECKING:
    from trainer.ranks import Ranks

_OF_RUNS = ("--resume", "--save", "--init-from")
"""Flags of which a run's command line has one: they say where its weights are."""
_ASKED = "what is asked, and how"
_OF_TASKS = ("length", "blank", "tokenizer")


def evaluated(_module: str, words: Sequence[str]) -> type[RankCommand]:
    """Return the command that a command line is of."""
    flags = {word.partition("=")[0] for word in words}
    return EvaluateModel if flags.isdisjoint(_OF_RUNS) else EvaluateRun


@dataclass(frozen=True, kw_only=True)
class EvaluateRun(Settings):
    """Evaluate a checkpoint of a run."""

    PROGRAM = "trainer.evaluate"

    def prepared(self, *, world: int) -> Config:
        """Return the run."""
        return config_of(self, world=world)

    def work(self, asked: Config, ranks: "Ranks") -> int:
        """Print the figures of the newest checkpoint."""
        with ended_by_interrupt():  # these load torch
            from trainer.benchmarks import benchmarks_of, print_figures  # noqa: PLC0415
            from trainer.evaluate.validation import evaluate, print_tally  # noqa: PLC0415
            from trainer.start import start  # noqa: PLC0415
        started = start(asked, ranks)
        benchmarks = ranks.together(lambda: benchmarks_of(started))
        stepper = started.stepper
        tally = evaluate(stepper.losses, started.data, at_once=stepper.micro_batch, ranks=ranks)
        print_tally(tally, f"step {started.step:,}", ranks)
        print_figures(benchmarks, stepper.answer)
        return 0


@dataclass(frozen=True, kw_only=True)
class EvaluateModel(Opening, RankCommand):
    """Evaluate a trained model."""

    PROGRAM = "trainer.evaluate"
    USAGE = "%(prog)s MODEL [--data DIR] [--task NAME=FILE] [FLAG ...]"
    EPILOG = f"Held-out loss: {called('evaluate')} --resume RUN, with the flags of the run."
    GROUPS = (_ASKED, OPENED)

    path: Path = option(MISSING, flag=WORD, metavar="MODEL", type=local_path, group=_ASKED)
    """a run's folder, one of its checkpoints, or a published checkpoint"""
    task: tuple[str, ...] = option((), metavar="NAME=FILE", action="append")
    """A task of lm-evaluation-harness (hellaswag, arc_easy, copa, lambada, wikitext, …), or choices
    or language_model, and the JSON lines of its items; may be repeated."""
    data: tuple[str, ...] = option((), metavar="DIR", action="append")
    """Held-out loss on the validation documents of these data (a folder, or
    hf:OWNER/NAME[@REVISION]); may be repeated. Default without --task: those of the model's run."""
    eval_samples: int = option(1024, type=count)
    """Held-out loss: windows that are read, the same as in training; 0: all."""
    length: int | None = option(None, type=positive)
    """Tokens of a row at most. Default: the model's positions."""
    blank: str | None = option(None, choices=(GMASK, MASK))
    """What a glm fills: [gMASK], or [MASK]. Default: gmask, but mask for a run without task
    masks."""
    batch_tokens: int = option(BATCH_TOKENS, type=positive, metavar="N")
    """Tokens that a device computes at once."""

    @cached_property
    def files(self) -> Mapping[str, Path]:
        """The files of tasks, by name."""
        return parse_tasks("--task", self.task)

    def __post_init__(self) -> None:
        files = self.files
        for name in given(self):
            if name in _OF_TASKS and not files:
                raise UserError(f"{flag_of(name)} is of tasks: give --task NAME=FILE with it.")
            if name == "eval_samples" and files and not self.data:
                raise UserError("--eval-samples is of held-out loss: give --data DIR with it.")

    def work(self, _: Self, ranks: "Ranks") -> int:
        """Print what the model knows of held-out text and of tasks."""
        with ended_by_interrupt():  # as above
            from trainer.benchmarks import answers_of, open_benchmarks, print_figures  # noqa: PLC0415
            from trainer.evaluate.validation import evaluate, print_tally  # noqa: PLC0415
            from trainer.held_out import held_out_run, open_held_out  # noqa: PLC0415
            from trainer.published import brought  # noqa: PLC0415
            from trainer.trained import find_origin, load_model  # noqa: PLC0415
        opening: Opening = self
        if ranks.world > 1 and self.device is None:
            opening = replace(self, device=str(ranks.device))
        origin = ranks.together(lambda: find_origin(self.path, opening))
        benchmarks = ranks.together(
            lambda: open_benchmarks(
                self.files, origin, opening, ranks=ranks, length=self.length, blank=self.blank
            )
        )
        if benchmarks is not None:
            benchmarks.batch_tokens = self.batch_tokens
        data = None
        if self.data or benchmarks is None:
            run = brought(ranks.together(lambda: held_out_run(origin, self.data)), ranks)
            data = ranks.together(
                lambda: open_held_out(origin, run, eval_samples=self.eval_samples)
            )
        model = ranks.together(lambda: load_model(origin, opening))
        answer = answers_of(model)
        step = "" if origin.step is None else f", step {origin.step:,}"
        if ranks.is_first:
            print_line(f"{origin.path}{step}: {origin.objective}")
        if data is not None:
            size = max(1, self.batch_tokens // data.run.length)
            print_tally(evaluate(answer, data, at_once=size, ranks=ranks), "held-out text", ranks)
        print_figures(benchmarks, answer)
        return 0
