"""The commands of this package on all ranks: flags in, exit code out."""

import logging
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from shards.errors import UserError
from trainer.config import Config, parse
from trainer.ranks import AgreedError, Ranks, leave

REFUSED = 2
STOPPED = 130


def run_command(program: str, work: Callable[[Config, Ranks], int]) -> NoReturn:
    """Run a command and end the process with its exit code: 2 after one paragraph for the person.

    Args:
        program: its name, which begins every message.
        work: does the work, and returns the exit code.
    """
    logging.basicConfig(format="%(message)s", level=logging.ERROR)
    logging.getLogger("trainer").setLevel(logging.INFO)
    try:
        code = _code(program, work)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    # Not sys.exit: gloo's and NCCL's threads may abort while the interpreter takes itself apart.
    os._exit(code)


def _code(program: str, work: Callable[[Config, Ranks], int]) -> int:
    known_to_all = True  # every rank has the same flags
    try:
        config = parse(sys.argv[1:], world=int(os.environ.get("WORLD_SIZE", "1")), program=program)
        ranks = Ranks.join()
        known_to_all = False
        code = work(config, ranks)
        leave()
    except UserError as error:
        is_agreed = known_to_all or isinstance(error, AgreedError)
        if not is_agreed or os.environ.get("RANK", "0") == "0":
            sys.stderr.write(f"{program}: {error}\n")
        return REFUSED
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{program}: stopped before the first step\n")
        return STOPPED
    return code
