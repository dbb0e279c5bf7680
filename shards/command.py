"""What the commands of all three wings share: their parser, exit codes and log lines."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from shards.errors import UserError
from shards.interrupt import STOPPED, begun
from shards.memory import is_lack_of_memory
from shards.shown import MessageFormatter, guard, print_lines, tell

REFUSED = 2
"""The exit code after an error that the person can fix."""

UNREAD = 141
"""The exit code when nobody reads the output any more (`| head`), as shells have it: 128 +
SIGPIPE."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are UserErrors, and whose flags cannot be abbreviated."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self._groups: dict[str, argparse._ArgumentGroup] = {}

    def group(self, title: str) -> "argparse._ActionsContainer":
        """Return the group of flags that `--help` shows below a title; "": the parser itself."""
        if not title:
            return self
        if title not in self._groups:
            self._groups[title] = self.add_argument_group(title)
        return self._groups[title]

    def parse_known_args(  # type: ignore[override]  # of two overloads; both are this one
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse words that are UTF-8: nothing else can be written to a file or read by Arrow."""
        for word in sys.argv[1:] if args is None else args:
            if any("\ud800" <= character <= "\udfff" for character in word):
                self.error(f"the word {word} is not UTF-8; rename what it names")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with the command line."""
        raise UserError(f"{message}. {self.prog} --help lists every flag")


def exit_code(
    program: str,
    run: Callable[[], int | None],
    *,
    stopped: str,
    reports: Callable[[UserError], bool] = lambda _: True,
) -> int:
    """Return the exit code of a command.

    An error that the person can fix is one paragraph and REFUSED, and so is a lack of memory;
    Ctrl-C is one line and STOPPED; an output that nobody reads any more is UNREAD: the work may be
    unfinished.

    Args:
        program: Its name, which begins every message.
        run: Does the work; returns an exit code, or None for 0.
        stopped: What the line after Ctrl-C says.
        reports: Whether this process prints an error; of several ranks one is enough.
    """
    guard()
    try:
        begun()
        code = run()
        sys.stdout.flush()
    except UserError as error:
        if reports(error):
            tell(f"{program}: {error}")
        return REFUSED
    except KeyboardInterrupt:
        tell(f"{program}: stopped; {stopped}", start="\n")
        return STOPPED
    except BrokenPipeError:
        # Leave nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except Exception as error:
        if not is_lack_of_memory(error):
            raise
        reason = f" ({error})" if str(error) else ""
        tell(
            f"{program}: there is not enough memory{reason}: use a machine with more, or raise the "
            f"limit (ulimit -v); {stopped}"
        )
        return REFUSED
    return code or 0


def print_text(program: str, text: Callable[[], str], *, stopped: str) -> int:
    """Print the text that a command returns, line by line, as one that `exit_code` runs."""

    def run() -> None:
        print_lines(text().split("\n"))

    return exit_code(program, run, stopped=stopped)


def log_errors() -> None:
    """Show only errors in the log, visible and without secrets."""
    handler = logging.StreamHandler()
    handler.setFormatter(MessageFormatter())
    logging.basicConfig(handlers=[handler], level=logging.ERROR)


def log_plainly() -> None:
    """Show our own log lines without anything around them, and only errors of the libraries."""
    log_errors()
    for name, level in (
        ("corpusmill", logging.INFO),
        ("trainer", logging.INFO),
        ("pipelines", logging.WARNING),
    ):
        logging.getLogger(name).setLevel(level)
