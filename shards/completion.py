"""The completion of `corpusmill` for a shell: `corpusmill completion bash|zsh|fish|tcsh`.

shtab writes the script from the parsers of all commands. Nothing of Python runs at a Tab; what is
printed is as new as the corpusmill that printed it.
"""

import argparse
import io
import runpy
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, suppress
from typing import NoReturn

import shtab

from shards.command import Parser
from shards.extras import missing_extra
from shards.program import COMMANDS, PROGRAM, Command, called_help
from shards.shown import print_lines, tell

SHELLS = ("bash", "zsh", "fish", "tcsh")

_PATHS = frozenset(
    {"DATASET", "DIR", "DISK", "FILE", "FOLDER", "MODEL", "PATH", "RUN", "RUN|CHECKPOINT"}
)
"""What flags and words call a value that is a file or a folder."""


class _FoundError(Exception):
    def __init__(self, parser: Parser) -> None:
        super().__init__(parser.prog)
        self.parser = parser


def complete(words: Sequence[str], *, others: Mapping[str, str]) -> None:
    """Print what a shell completes commands with.

    Args:
        words: The command line: a shell.
        others: What each further word after `corpusmill` does.

    Raises:
        UserError: It is another shell.
    """
    ours = Parser(
        prog=f"{PROGRAM} completion",
        description="Print what a shell completes commands, flags and their values with. It loads "
        "every command that is installed, which takes seconds: keep it in a file, and write it "
        "again after an upgrade.",
        epilog=f"bash: {PROGRAM} completion bash > "
        f"~/.local/share/bash-completion/completions/{PROGRAM}",
    )
    ours.add_argument("shell", choices=SHELLS, metavar="|".join(SHELLS))
    shell = ours.parse_args(words).shell
    root = Parser(prog=PROGRAM)
    root.add_argument("--version", action="store_true", help="which this is")
    commands = root.add_subparsers(metavar="COMMAND")
    for name, about in others.items():
        commands.add_parser(name, help=about)
    commands.choices["completion"] = ours
    missing: dict[str, list[str]] = {}
    for command in COMMANDS.values():
        commands.add_parser(command.name, help=command.about)
        parser = _parser_of(command, missing)
        if parser is not None:
            _name_files(parser)
            commands.choices[command.name] = parser
    for told, names in missing.items():
        tell(f"{PROGRAM} completion: {', '.join(names)} without flags: {told}")
    print_lines(called_help(shtab.complete(root, shell), by_name=True).split("\n"))


def _parser_of(command: Command, missing: dict[str, list[str]]) -> Parser | None:
    """Return the parser of a command; None where it has none, or an extra is `missing`."""

    def found(parser: Parser) -> NoReturn:
        raise _FoundError(parser)

    unread = io.StringIO()  # what a command says that has no parser
    before, sys.argv = sys.argv, [command.module, "--help"]
    Parser.seen = staticmethod(found)
    try:
        with warnings.catch_warnings(), redirect_stderr(unread), suppress(SystemExit):
            warnings.simplefilter("ignore")  # that modules which others have imported run again
            runpy.run_module(command.module, run_name="__main__")
    except _FoundError as error:
        return error.parser
    except ModuleNotFoundError as error:
        told = missing_extra(error)
        if told is None:
            raise
        missing.setdefault(told, []).append(command.name)
    finally:
        sys.argv = before
        Parser.seen = None
    return None


def _name_files(parser: argparse.ArgumentParser) -> None:
    """Let a shell complete paths where a value is one."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for part in action.choices.values():
                _name_files(part)
        elif str(action.metavar).partition(".")[0] in _PATHS:
            vars(action)["complete"] = shtab.FILE
