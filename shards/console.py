"""The console script `corpusmill`: names for what `python -m` runs.

It starts the same Python again, as `python -m` with the module of the command, in this very
process: signals, exit codes and what worker processes import are those of `python -m`.
"""

import importlib.util
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import NoReturn

from shards.command import exit_code
from shards.errors import UserError
from shards.program import COMMANDS, CORPUS_GROUP, GROUPS, PROGRAM, STARTED
from shards.shown import print_line, print_lines
from shards.spelling import did_you_mean, nearest

_PACKAGES = ("pipelines", "shards", "trainer")
_RUN, _COMPLETION = "run", "completion"
_OTHERS = {
    _RUN: "a corpus of one's own: corpusmill run my_notes …",
    _COMPLETION: "print a shell's completion: bash, zsh, fish, tcsh",
}


def main() -> int:
    """Run the command that the command line names, and return the exit code if it comes back."""
    return exit_code(PROGRAM, lambda: _run(sys.argv[1:]), stopped="nothing was begun")


def _run(words: Sequence[str]) -> None:
    name, *rest = words or ("--help",)
    if name in ("-h", "--help", "help"):
        print_lines(_help())
    elif name in ("-V", "--version"):
        print_line(f"{PROGRAM} {metadata.version(PROGRAM)}, Python {platform.python_version()}")
    elif name == _COMPLETION:
        from shards.completion import complete  # noqa: PLC0415  has more to import

        complete(rest, others=_OTHERS)
    elif name == _RUN:
        if not rest or rest[0].startswith("-"):
            raise UserError(
                f"name the module of your corpus, as python -m takes it: {PROGRAM} run my_notes "
                "--input …; it is looked for in this folder first"
            )
        _check_module(rest[0])
        _become(rest[0], rest[1:])
    elif name in COMMANDS:
        _become(COMMANDS[name].module, rest)
    else:
        corpora = _installed_corpora()
        if name not in corpora:
            raise UserError(_unknown(name, corpora))
        _become(corpora[name], rest)


def _help() -> list[str]:
    """Return the commands, group by group."""
    groups = {
        title: {command.name: command.about for command in commands}
        for title, commands in GROUPS.items()
    }
    corpora = {
        name: f"a corpus of {module.partition('.')[0]}"
        for name, module in _installed_corpora().items()
    }
    if corpora:
        groups["installed corpora"] = corpora
    return [
        f"usage: {PROGRAM} COMMAND …",
        "",
        "Text corpora into token shards; GLM trained on them.",
        *_listed({**groups, "more": _OTHERS}),
        "",
        f"{PROGRAM} COMMAND --help lists the flags of one; --version says which this is.",
    ]


def _listed(groups: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield what each command does, by name, below the titles of the groups."""
    width = max(len(name) for commands in groups.values() for name in commands) + 2
    for title, commands in groups.items():
        yield from ("", f"{title}:")
        yield from (f"  {name:<{width}}{about}" for name, about in commands.items())


def list_commands(package: str, words: Sequence[str]) -> int:
    """List the commands of a package, for `python -m PACKAGE`, and return the exit code.

    Args:
        package: pipelines or trainer.
        words: The command line. A word is refused: commands are named behind a dot.
    """
    own = {
        title: {c.module: c.about for c in commands if c.module.startswith(f"{package}.")}
        for title, commands in GROUPS.items()
    }

    def run() -> None:
        if words and words[0] not in ("-h", "--help"):
            known = [module.partition(".")[2] for commands in own.values() for module in commands]
            near = nearest(words[0], known, most=1)
            meant = f" Did you mean python -m {package}.{near[0]}?" if near else ""
            raise UserError(
                f"a command stands behind a dot, not a space.{meant} python -m {package} lists all"
            )
        print_lines(
            [
                f"usage: python -m {package}.COMMAND …",
                *_listed({title: commands for title, commands in own.items() if commands}),
                "",
                f"python -m {package}.COMMAND --help lists the flags of one.",
            ]
        )

    return exit_code(package, run, stopped="nothing was begun")


def _installed_corpora() -> dict[str, str]:
    """Return the modules of the corpora that installed packages add, by name."""
    return {entry.name: entry.module for entry in metadata.entry_points(group=CORPUS_GROUP)}


def _unknown(name: str, corpora: Iterable[str]) -> str:
    """Return what to say of a word that is no command."""
    modules = {command.module: command.name for command in COMMANDS.values()}
    if name in modules:
        hint = f"did you mean {modules[name]}?"
    else:
        hint = did_you_mean(name, [*COMMANDS, *corpora, *_OTHERS], most=2)
    hint = f" {hint[:1].upper()}{hint[1:]}" if hint else ""
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


def _become(module: str, arguments: Sequence[str]) -> NoReturn:
    """Turn this process into `python -m` with a module.

    Like `python -m` it looks for modules of one's own in the folder that it is started in, first of
    all; but not in one that holds what has the name of a package of ours, a checkout for example.
    """
    os.environ[STARTED] = "1"
    if _taken(Path.cwd()) is not None:
        os.environ["PYTHONSAFEPATH"] = "1"
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])


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
