"""Prints a shell's completion script: `corpusmill completion bash|zsh|fish|tcsh`.

shtab writes the script from the parsers of all commands. Pressing Tab does not start Python, so the
script offers the flags of the corpusmill that printed it.
"""

import argparse
from collections.abc import Iterable
from dataclasses import MISSING, dataclass
from typing import ClassVar

import shtab

from shards.commands.command import Command, Parser
from shards.commands.extras import missing_extra
from shards.commands.flags import WORD, option
from shards.commands.output import print_lines, print_message
from shards.commands.table import COMMANDS, PROGRAM, Entry
from shards.console import OTHERS, command_of

SHELLS = ("bash", "zsh", "fish", "tcsh")

_PATHS = frozenset(
    {"DATASET", "DIR", "DISK", "FILE", "FOLDER", "MODEL", "PATH", "RUN", "RUN|CHECKPOINT"}
)
"""Metavars of values that are files or folders."""


@dataclass(frozen=True, kw_only=True)
class PrintCompletion(Command):
    """Print the script with which a shell completes commands, flags and values.

    It loads every command that is installed, which takes seconds.
    """

    STOPPED: ClassVar[str] = "nothing was printed"
    EPILOG: ClassVar[str] = (
        f"Save it to a file, again after each upgrade: {PROGRAM} completion bash > "
        f"~/.local/share/bash-completion/completions/{PROGRAM}"
    )

    shell: str = option(MISSING, flag=WORD, choices=SHELLS, metavar="|".join(SHELLS))
    """Name of the shell."""

    def run(self) -> None:
        """Print the script."""
        print_lines(script(self.shell).split("\n"))


def script(shell: str, entries: Iterable[Entry] = tuple(COMMANDS.values())) -> str:
    """Return a shell's completion script; a line on stderr names commands whose flags it lacks."""
    root = argparse.ArgumentParser(prog=PROGRAM)
    root.add_argument("--version", action="store_true", help="which this is")
    groups = {"": root.add_subparsers(metavar="COMMAND")}
    for name, about in OTHERS.items():
        groups[""].add_parser(name, help=about)
    missing: dict[str, list[str]] = {}
    for entry in entries:
        *group, name = entry.name.split()
        for word in group:
            if word not in groups:
                parser = groups[""].add_parser(word, help=f"{entry.name}, …")
                groups[word] = parser.add_subparsers(metavar="COMMAND")
        commands = groups["".join(group)]
        commands.add_parser(name, help=entry.about)
        if found := parser_of(entry, missing):
            _name_files(found)
            commands.choices[name] = found
    for told, names in missing.items():
        print_message(f"{PROGRAM} completion: {', '.join(names)} without flags: {told}")
    return shtab.complete(root, shell)


def parser_of(entry: Entry, missing: dict[str, list[str]]) -> Parser | None:
    """Return a command's parser; if an extra is missing, note that in `missing` and return None."""
    try:
        return command_of(entry).parser(entry.program)
    except ModuleNotFoundError as error:
        told = missing_extra(error)
        if told is None:
            raise
        missing.setdefault(told, []).append(entry.name)
        return None


def _name_files(parser: argparse.ArgumentParser) -> None:
    """Let the completion script suggest paths for flags whose values are paths."""
    for action in parser._actions:
        if str(action.metavar).partition(".")[0] in _PATHS:
            vars(action)["complete"] = shtab.FILE
