"""The commands of this package on all ranks: flags in, exit code out."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

from shards.command import exit_code, log_plainly
from shards.errors import UserError
from shards.interrupt import ended_by_interrupt
from shards.shown import tell
from trainer.config import Config, parse

if TYPE_CHECKING:
    from trainer.ranks import Ranks

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Reader(Protocol[T_co]):
    """Reads a command line for a number of ranks."""

    def __call__(self, argv: Sequence[str], *, world: int) -> T_co:
        """Return what the command line asks for."""


def run_command(program: str, work: "Callable[[Config, Ranks], int]") -> NoReturn:
    """Run a command with the flags of a training run, as `run_on_ranks` does."""
    run_on_ranks(program, partial(parse, program=program), work)


def run_on_ranks(program: str, read: Reader[T], work: "Callable[[T, Ranks], int]") -> NoReturn:
    """Run a command and end the process with its exit code.

    An error that all ranks know of is reported by the first one alone.

    Args:
        program: Its name, which begins every message.
        read: Makes of the command line what `work` takes.
        work: Does the work and returns the exit code.
    """
    known_to_all = True  # every rank has the same flags

    def run() -> int:
        nonlocal known_to_all
        config = read(sys.argv[1:], world=int(os.environ.get("WORLD_SIZE", "1")))
        if sys.stderr.isatty():
            tell(f"{program}: loading torch and DeepSpeed")
        with ended_by_interrupt():
            from trainer import ranks  # noqa: PLC0415  loads torch; --help and wrong flags need none

        own = ranks.Ranks.join()
        known_to_all = False
        code = work(config, own)
        ranks.leave()
        return code

    def reports(error: UserError) -> bool:
        is_first = os.environ.get("RANK", "0") == "0"
        if known_to_all or is_first:
            return is_first
        from trainer.ranks import AgreedError  # noqa: PLC0415  as above

        return not isinstance(error, AgreedError)

    log_plainly()
    code = exit_code(program, run, stopped="no step was taken", reports=reports)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: gloo's and NCCL's threads may abort while the interpreter takes itself apart.
    os._exit(code)
