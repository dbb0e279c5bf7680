"""The commands of this package on all ranks: flags in, exit code out."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from shards.command import exit_code, log_plainly
from shards.errors import UserError
from trainer.config import Config, parse
from trainer.ranks import AgreedError, Ranks, leave


def run_command(program: str, work: Callable[[Config, Ranks], int]) -> NoReturn:
    """Run a command and end the process with its exit code.

    An error that all ranks know of is reported by the first one alone.

    Args:
        program: Its name, which begins every message.
        work: Does the work and returns the exit code.
    """
    known_to_all = True  # every rank has the same flags

    def run() -> int:
        nonlocal known_to_all
        config = parse(sys.argv[1:], world=int(os.environ.get("WORLD_SIZE", "1")), program=program)
        ranks = Ranks.join()
        known_to_all = False
        code = work(config, ranks)
        leave()
        return code

    def reports(error: UserError) -> bool:
        is_agreed = known_to_all or isinstance(error, AgreedError)
        return not is_agreed or os.environ.get("RANK", "0") == "0"

    log_plainly()
    try:
        code = exit_code(program, run, stopped="no step was taken", reports=reports)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    # Not sys.exit: gloo's and NCCL's threads may abort while the interpreter takes itself apart.
    os._exit(code)
