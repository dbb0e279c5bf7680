"""The command line of all three wings: parser, exit codes, log lines."""

import argparse
import logging
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from shards.errors import UserError


def exit_code(program: str, run: Callable[[], None], *, stopped: str) -> int:
    """Return the exit code of a command: 2 after one paragraph where a person can mend what failed.

    Args:
        program: Its name, which begins every message.
        run: Does the work.
        stopped: What to say when the person stops it, which gives 130.
    """
    try:
        run()
    except UserError as error:
        sys.stderr.write(f"{program}: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{program}: stopped; {stopped}\n")
        return 130
    return 0


def log_plainly() -> None:
    """Show our own lines as they are, and of the libraries' only what went wrong."""
    logging.basicConfig(format="%(message)s", level=logging.ERROR)
    logging.getLogger("corpusmill").setLevel(logging.INFO)
    logging.getLogger("pipelines").setLevel(logging.WARNING)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are UserErrors, and whose flags are written in full."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with the command line."""
        raise UserError(f"{message}. {self.prog} --help lists every flag")
