"""Runs the commands of this package on all ranks."""

import argparse
import importlib
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self

from shards.commands.command import EXIT_REFUSED, Command, Parser, log_plainly
from shards.commands.output import print_message
from shards.commands.spelling import expected
from shards.errors import UserError
from trainer.deepspeed import presets
from trainer.foreign_flags import FOREIGN_FLAGS
from trainer.json_file import is_file

_ENDS = ("--steps", "--max-steps", "--max-tokens", "--epochs")
"""Flags that set the end of a run."""
_STARTED = {
    "SLURM_STEP_NUM_TASKS": "srun",
    "OMPI_COMM_WORLD_SIZE": "Open MPI's mpirun",
    "PMI_SIZE": "mpirun",
}
"""Environment variables with the number of started processes, and the program that sets each."""
_NUMBERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT")
_MEETING = ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_SCRIPTS = (
    "Start the run with torchrun (trainer/launch/torchrun.sh on one machine, torchrun-nodes.sh on "
    "several), deepspeed (trainer/launch/deepspeed.sh) or, under Slurm, sbatch "
    "trainer/launch/slurm.sbatch"
)


@dataclass(frozen=True, kw_only=True)
class RankCommand(Command):
    """A command that runs on all ranks with the same flags."""

    STOPPED = "no step was taken"
    FOREIGN = FOREIGN_FLAGS
    WORK: ClassVar[str]
    """MODULE:NAME of the function that does the work: it takes the result of `prepared` and the
    ranks, and returns the exit code. Its module loads torch."""

    @classmethod
    def parser(cls, program: str) -> Parser:
        """Return the parser of the command."""
        parser = super().parser(program)
        # DeepSpeed's launcher passes this flag to every process; the environment has the same
        # value.
        parser.add_argument("--local_rank", "--local-rank", help=argparse.SUPPRESS)
        return parser

    @classmethod
    def parse(cls, words: Sequence[str], program: str) -> Self:
        """Parse a command line and return the command with its options."""
        log_plainly()
        with report_on_rank0():
            return cls.read(words, program)

    @classmethod
    def read(cls, words: Sequence[str], program: str) -> Self:
        """Parse a command line as `Command.parse` does."""
        return super().parse(words, program)

    def leave(self, code: int) -> NoReturn:
        """End the process with an exit code."""
        _end(code)

    def run(self) -> int:
        """Do the work on all ranks and return the exit code."""
        check_launcher(os.environ)
        with report_on_rank0():
            prepared = self.prepared(world=int(os.environ.get("WORLD_SIZE", "1")))
        if sys.stderr.isatty():
            print_message("loading torch and DeepSpeed")
        from trainer import distributed  # noqa: PLC0415  loads torch; --help and wrong flags need none

        own = distributed.Ranks.join()
        with report_on_rank0(distributed.CollectiveError):
            module, _, name = self.WORK.partition(":")
            work = getattr(importlib.import_module(module), name)
            code: int = work(prepared, own)
        distributed.leave()
        return code

    def prepared(self, *, world: int) -> Any:  # noqa: ARG002
        """Return the argument of the work: the flags, checked as far as possible without torch.

        Args:
            world: The number of ranks.

        Raises:
            UserError: The flags do not fit each other.
        """
        return self


@contextmanager
def report_on_rank0(error: type[UserError] = UserError) -> Iterator[None]:
    """Make only the first rank report errors that all ranks know of; the other ranks just exit."""
    try:
        yield
    except error:
        if os.environ.get("RANK", "0") == "0":
            raise
        _end(EXIT_REFUSED)


def _end(code: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    # In sys.exit, gloo's and NCCL's threads may abort while the interpreter shuts down.
    os._exit(code)


def with_recipe(words: Sequence[str], *, folder: Path, program: str) -> list[str]:
    """Return a recipe's flags and then the rest of the command line, which takes precedence.

    Args:
        words: The command line.
        folder: The folder of the named recipes.
        program: The name of the command.

    Raises:
        UserError: There is no such recipe.
    """
    finder = Parser(prog=program, add_help=False)
    finder.add_argument("--recipe")
    known, rest = finder.parse_known_args(words)
    if known.recipe is None:
        return rest
    path = next(filter(is_file, (Path(known.recipe), folder / f"{known.recipe}.args")), None)
    if path is None:
        raise UserError(
            f"--recipe {known.recipe}: there is no such file, and no recipe of that name: "
            f"{expected(known.recipe, presets('args', folder=folder))}."
        )
    flags = shlex.split(path.read_text("utf-8"), comments=True)
    if any(word.partition("=")[0] in _ENDS for word in rest):
        finder.add_argument(*_ENDS)
        _, flags = finder.parse_known_args(flags)
    return [*flags, *rest]


def check_launcher(environment: Mapping[str, str]) -> None:
    """Check that a launcher set all of its variables or none.

    If only some are set, each process would train the whole run alone or wait forever for other
    processes.

    Raises:
        UserError: Variables are missing or not numbers; the message names them and the scripts that
            set all of them.
    """
    for name in _NUMBERS:
        value = environment.get(name, "0")
        if not value.isdecimal():
            raise UserError(f"{name} is {value!r} in the environment: expected a whole number.")
    if "RANK" in environment:
        missing = [name for name in _MEETING if name not in environment]
        if missing and environment.get("WORLD_SIZE") != "1":
            raise UserError(
                f"RANK is {environment['RANK']} in the environment, and {', '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} not set: the ranks cannot find each "
                f"other. {_SCRIPTS}, or unset RANK to train in this process alone."
            )
        return
    world = environment.get("WORLD_SIZE", "1")
    if world != "1":
        raise UserError(
            f"WORLD_SIZE is {world} in the environment, and RANK is not set. {_SCRIPTS}, or unset "
            "WORLD_SIZE to train in this process alone."
        )
    for name, program in _STARTED.items():
        if environment.get(name, "1") != "1":
            raise UserError(
                f"{program} started {environment[name]} processes ({name}), and RANK is not set: "
                f"each would train the whole run by itself. {_SCRIPTS}."
            )
