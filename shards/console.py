"""The entry point of all commands: `corpusmill NAME …`, the same as `python -m MODULE …`.

    main, run_package, run_module ─▶ choose ─▶ import ─▶ parse the flags ─▶ run

A command's module is imported when the command is called; a missing extra is reported then.
"""

import importlib
import importlib.util
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from shards.commands.command import Command, Invocation, exit_code
from shards.commands.output import print_line, print_lines
from shards.commands.spelling import nearest
from shards.commands.table import COMMANDS, CORPUS, CORPUS_GROUP, GROUPS, MORE, PROGRAM, Entry
from shards.errors import UserError

_DATASETS = "shards"
"""The word that precedes the names of commands on datasets."""
_RUN = "run"
OTHERS = {_RUN: "read a custom corpus: corpusmill run my_notes …"}
"""Words after `corpusmill` that are not commands of the table."""

_Chosen = tuple[Entry, Sequence[str]] | None
"""A command and its words; None if the list of commands was shown instead."""


def main() -> int:
    """Run the command that the command line names and return the exit code."""
    # Makes custom modules in the working folder importable; as the last entry it hides none.
    sys.path.append(str(Path.cwd()))
    return _run(PROGRAM, lambda: _named(sys.argv[1:]))


def run_package(package: str, words: Sequence[str]) -> int:
    """Run the command that `python -m PACKAGE` names, or list its commands; return the exit code.

    Args:
        package: pipelines, shards or trainer.
        words: The command line.
    """
    start = f"python -m {package}"
    return _run(start, lambda: _choose(start, _of_package(package), words))


def run_module(module: str, words: Sequence[str] | None = None) -> int:
    """Run the command of `python -m MODULE` and return the exit code.

    Args:
        module: A module of the table, or one that defines a corpus.
        words: The command line; None stands for the command line of this process.
    """
    known = (entry for entry in COMMANDS.values() if entry.module == module)
    entry = next(known, Entry(module, module, "", CORPUS))
    return _run(entry.program, lambda: (entry, sys.argv[1:] if words is None else words))


def _run(start: str, choose: Callable[[], _Chosen]) -> int:
    """Run the command that a function chooses, if it returns one, and return the exit code.

    Args:
        start: The typed words before those that name the command.
        choose: Returns the command, or lists the commands and returns None.
    """
    invocation, command = Invocation(start), Command()

    def work() -> int | None:
        nonlocal command
        chosen = choose()
        if chosen is None:
            return None
        entry, words = chosen
        invocation.program = entry.program
        command = command_of(entry, words).parse(words, entry.program)
        invocation.stopped = command.STOPPED
        return command.run()

    code = exit_code(invocation, work)
    return command.leave(code)


def _named(words: Sequence[str]) -> _Chosen:
    """Return the command that the words after `corpusmill` name."""
    name, *rest = words or ("--help",)
    if name in ("-V", "--version"):
        print_line(f"{PROGRAM} {metadata.version(PROGRAM)}, Python {platform.python_version()}")
        return None
    if name == _RUN:
        chosen: _Chosen = (_custom_corpus(rest), rest[1:])
    elif name == _DATASETS:
        chosen = _choose(f"{PROGRAM} {_DATASETS}", _of_package(_DATASETS), rest)
    else:
        chosen = _choose(PROGRAM, {**_installed_corpora(), **COMMANDS}, words, others=OTHERS)
    if chosen:  # only its name differs from that of `python -m`
        sys.argv = [f"{PROGRAM} {chosen[0].name}", *chosen[1]]
    return chosen


def _of_package(package: str) -> dict[str, Entry]:
    """Return the commands of a package by the last words of their names."""
    entries = (entry for entry in COMMANDS.values() if entry.module.split(".")[0] == package)
    return {entry.name.split()[-1]: entry for entry in entries}


def _choose(
    start: str,
    entries: Mapping[str, Entry],
    words: Sequence[str],
    *,
    others: Mapping[str, str] = MappingProxyType({}),
) -> _Chosen:
    """Return the command that the first word names, or list all commands and return None.

    Args:
        start: The typed words before `words`.
        entries: The commands by name.
        words: The typed words after `start`.
        others: Further accepted words, each with its description.

    Raises:
        UserError: There is no such command.
    """
    if not words or words[0] in ("-h", "--help", "help"):
        print_lines(_page(start, entries, others))
        return None
    name, *rest = words
    if name in entries:
        return entries[name], rest
    modules = {entry.module: known for known, entry in entries.items()}
    known = {each.split()[-1]: each for each in (*entries, *others)}
    near = nearest(modules.get(name, name).split()[-1], known, most=2)
    hint = f" Did you mean {' or '.join(known[each] for each in near)}?" if near else ""
    raise UserError(f"there is no command {name!r}.{hint} {start} --help lists all")


def command_of(entry: Entry, words: Sequence[str] = ()) -> type[Command]:
    """Return the class of the command that an entry and a command line name."""
    module, _, name = entry.made_by.partition(":")
    made = getattr(importlib.import_module(module), name)
    command: type[Command] = made if isinstance(made, type) else made(entry.module, words)
    return command


def _page(start: str, entries: Mapping[str, Entry], others: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each command with its purpose, below the titles of groups."""
    yield from (f"usage: {start} COMMAND …", "")
    yield "Turn text corpora into token shards, and train GLM on them."
    width = max(map(len, (*entries, *others))) + 2
    known = {entry: title for title, group in GROUPS.items() for entry in group}
    groups: dict[str, dict[str, str]] = {title: {} for title in (*GROUPS, "installed corpora")}
    for name, entry in entries.items():
        groups[known.get(entry, "installed corpora")][name] = entry.about
    groups[MORE] |= others
    for title, commands in groups.items():
        yield from ("", f"{title}:") if commands else ()
        yield from (f"  {name:<{width}}{about}" for name, about in commands.items())
    yield from ("", f"{start} COMMAND --help lists the flags of one.")


def _installed_corpora() -> dict[str, Entry]:
    """Return the corpora that installed packages add, by name."""
    found = {entry.name: entry.module for entry in metadata.entry_points(group=CORPUS_GROUP)}
    return {
        name: Entry(name, module, f"a corpus of {module.partition('.')[0]}", CORPUS)
        for name, module in found.items()
    }


def _custom_corpus(words: Sequence[str]) -> Entry:
    """Return the corpus of the module that the first word names.

    Raises:
        UserError: There is no word, or no such module.
    """
    if not words or words[0].startswith("-"):
        raise UserError(
            f"the module of your corpus is missing: {PROGRAM} run my_notes --input …; the module "
            "may be in this folder"
        )
    module = words[0]
    if module.endswith(".py") or importlib.util.find_spec(module.partition(".")[0]) is None:
        raise UserError(
            f"there is no module {module!r} in this folder or on Python's search path: run the "
            "command in its folder, install it, or add its folder to PYTHONPATH. The file "
            "my_notes.py is the module my_notes"
        )
    return Entry(f"{_RUN} {module}", module, "", CORPUS)
