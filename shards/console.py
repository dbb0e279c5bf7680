"""The one door to the commands: `corpusmill NAME …`, which is `python -m MODULE …`.

A command's module is imported when the command is called, where an interrupt ends the process and
a missing extra is named.
"""

import importlib
import importlib.util
import os
import platform
import runpy
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from shards.command import Command, exit_code, run_command
from shards.errors import UserError
from shards.interrupt import ended_by_interrupt
from shards.program import COMMANDS, CORPUS, CORPUS_GROUP, GROUPS, PROGRAM, Entry
from shards.shown import print_line, print_lines
from shards.spelling import did_you_mean

_PACKAGES = ("pipelines", "shards", "trainer")
_RUN, _COMPLETION = "run", "completion"
OTHERS = {
    _RUN: "a corpus of one's own: corpusmill run my_notes …",
    _COMPLETION: "print a shell's completion: bash, zsh, fish, tcsh",
}
"""Words behind `corpusmill` that are no commands of the table."""


def main() -> int:
    """Run the command that the command line names and return the exit code."""
    return exit_code(PROGRAM, lambda: _run(sys.argv[1:]), stopped="nothing was begun")


def _run(words: Sequence[str]) -> int | None:
    name, *rest = words or ("--help",)
    if name in ("-h", "--help", "help"):
        print_lines(_help())
    elif name in ("-V", "--version"):
        print_line(f"{PROGRAM} {metadata.version(PROGRAM)}, Python {platform.python_version()}")
    elif name == _COMPLETION:
        from shards.completion import complete  # noqa: PLC0415  has more to import

        complete(rest, others=OTHERS, run=run_entry)
    elif name == _RUN:
        if not rest or rest[0].startswith("-"):
            raise UserError(
                f"name the module of your corpus, as python -m takes it: {PROGRAM} run my_notes "
                "--input …; it is looked for in this folder first"
            )
        _check_module(rest[0])
        return _start(Entry(f"{_RUN} {rest[0]}", rest[0], "", CORPUS), rest[1:])
    elif name in _packages():
        return _run_word(f"{name} ", rest)
    else:
        return _run_word("", words)
    return None


def run_package(package: str, words: Sequence[str]) -> int:
    """Run the command that `python -m PACKAGE` names, or list its commands; return the exit code.

    Args:
        package: pipelines, shards or trainer.
        words: The command line.
    """
    entries = [entry for entry in COMMANDS.values() if entry.module.partition(".")[0] == package]
    by_word = {entry.name: entry for entry in entries if entry.module == package}
    named = next(
        (by_word[f"{package} {w}"] for w in words[:1] if f"{package} {w}" in by_word), None
    )
    if named is not None:
        return _called(named, words[1:])

    def run() -> None:
        if words and words[0] not in ("-h", "--help"):
            behind = by_word or {entry.module: entry for entry in entries}
            known = [name[len(package) + 1 :] for name in behind]
            meant = did_you_mean(words[0], known, most=1)
            hint = f": {meant}" if meant else "."
            raise UserError(f"there is no command {words[0]!r}{hint} python -m {package} lists all")
        print_lines(_package_help(package))

    return exit_code(f"python -m {package}", run, stopped="nothing was begun")


def run_module(module: str, words: Sequence[str] | None = None) -> int:
    """Run the command that `python -m MODULE` is, and return the exit code.

    Args:
        module: The module.
        words: The command line; None: that of this process.
    """
    (entry,) = (entry for entry in COMMANDS.values() if entry.module == module)
    return _called(entry, sys.argv[1:] if words is None else words)


def _run_word(group: str, words: Sequence[str]) -> int | None:
    """Run the command that the first word names, within a group of commands or outside of any."""
    if group and (not words or words[0] in ("-h", "--help")):
        print_lines(_help(group))
        return None
    name, *rest = words
    entries = {**_installed_corpora(), **COMMANDS}
    known = [each[len(group) :] for each in entries if each.startswith(group)]
    if name not in known or " " in name:
        raise UserError(_unknown(name, entries.values(), [*known, *(() if group else OTHERS)]))
    return _start(entries[f"{group}{name}"], rest)


def _start(entry: Entry, words: Sequence[str]) -> int:
    """Run a command by its name: as `python -m` does, but for what it calls itself.

    Like `python -m` it looks for modules of one's own in the folder that it is started in, first of
    all; but not in one that holds what has the name of a package of ours, a checkout for example.
    """
    sys.argv = [f"{PROGRAM} {entry.name}", *words]
    if _taken(Path.cwd()) is not None:
        os.environ["PYTHONSAFEPATH"] = "1"  # for processes below this one
    elif not sys.flags.safe_path:
        sys.path.insert(0, str(Path.cwd()))
    return _called(entry, words)


def _called(entry: Entry, words: Sequence[str]) -> int:
    return exit_code(entry.program, lambda: run_entry(entry, words), stopped="nothing was begun")


def run_entry(entry: Entry, words: Sequence[str]) -> int | None:
    """Run a command of the table and return its exit code, None for 0."""
    if not entry.made_by:
        runpy.run_module(entry.module, run_name="__main__")
        return None
    module, _, name = entry.made_by.partition(":")
    with ended_by_interrupt():
        made = getattr(importlib.import_module(module), name)
    if isinstance(made, type) and issubclass(made, Command):
        return run_command(made, words, program=entry.program)
    code: int = made(entry.module, words)
    return code


def _packages() -> set[str]:
    """Return the words that stand before the name of a command."""
    return {name.partition(" ")[0] for name in COMMANDS if " " in name}


def _help(group: str = "") -> list[str]:
    """Return all commands, or those behind a word, below the titles of their groups."""
    listed = {
        title: {entry.name: entry.about for entry in entries if entry.name.startswith(group)}
        for title, entries in GROUPS.items()
    }
    if not group:
        corpora = {
            entry.name: f"a corpus of {entry.module.partition('.')[0]}"
            for entry in _installed_corpora().values()
        }
        listed = {**listed, "installed corpora": corpora, "more": OTHERS}
    return _page(f"{PROGRAM} {group}", listed)


def _package_help(package: str) -> list[str]:
    """Return the commands of a package, as `python -m` takes them."""
    listed = {
        title: {
            entry.program.removeprefix("python -m "): entry.about
            for entry in entries
            if entry.module.partition(".")[0] == package
        }
        for title, entries in GROUPS.items()
    }
    return _page(f"python -m {package}{' ' if package in _packages() else '.'}", listed)


def _page(start: str, listed: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [
        f"usage: {start}COMMAND …",
        "",
        "Text corpora into token shards; GLM trained on them.",
        *_listed(listed),
        "",
        f"{start}COMMAND --help lists the flags of one.",
    ]


def _listed(groups: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield what each command does, by name, below the titles of the groups that have any."""
    width = max(len(name) for commands in groups.values() for name in commands) + 2
    for title, commands in groups.items():
        yield from ("", f"{title}:") if commands else ()
        yield from (f"  {name:<{width}}{about}" for name, about in commands.items())


def _installed_corpora() -> dict[str, Entry]:
    """Return the corpora that installed packages add, by name."""
    return {
        entry.name: Entry(entry.name, entry.module, "", CORPUS)
        for entry in metadata.entry_points(group=CORPUS_GROUP)
    }


def _unknown(name: str, entries: Iterable[Entry], known: Sequence[str]) -> str:
    """Return what to say of a word that is no command."""
    modules = {entry.module: entry.name for entry in entries}
    meant = did_you_mean(modules.get(name, name), known, most=2)
    hint = f" {meant[:1].upper()}{meant[1:]}" if meant else ""
    return f"there is no command {name!r}.{hint} {PROGRAM} --help lists all"


def _check_module(module: str) -> None:
    """Refuse a module that is nowhere, or that a command could not find here.

    Raises:
        UserError: There is no such module, or the folder has a package of ours by name.
    """
    taken = _taken(Path.cwd())
    if taken is not None:
        raise UserError(
            f"{taken} has the name of a part of {PROGRAM}, and would be taken for it: start in "
            "another folder, or rename it"
        )
    if not sys.flags.safe_path:
        sys.path.insert(0, str(Path.cwd()))
    if module.endswith(".py") and Path(module).exists():
        raise UserError(f"{module} is a file: name its module, {module.removesuffix('.py')}")
    top = module.partition(".")[0]
    if importlib.util.find_spec(top) is None:
        raise UserError(
            f"there is no module {top!r} in this folder, nor where Python looks for modules: start "
            "in its folder, install it, or put its folder into PYTHONPATH"
        )


def _taken(folder: Path) -> Path | None:
    """Return what Python would take for a package of ours in a folder."""
    installed = Path(__file__).parents[1]
    paths = (
        path
        for package in _PACKAGES
        for path in (folder / package / "__init__.py", folder / f"{package}.py")
        if path.exists() and not path.is_relative_to(installed)
    )
    return next(paths, None)
