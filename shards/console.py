"""The console script `corpusmill`: names for what `python -m` runs.

It starts the same Python again, as `python -m` with the module of the command, in this very
process: signals, exit codes and what worker processes import are those of `python -m`.
"""

import importlib.util
import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import NoReturn

from shards.command import exit_code
from shards.errors import UserError
from shards.program import COMMANDS, GROUPS, PROGRAM, STARTED
from shards.shown import print_line, print_lines
from shards.spelling import did_you_mean

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
        raise UserError(_unknown(name))


def _help() -> list[str]:
    """Return the commands, group by group."""
    width = max(map(len, [*COMMANDS, *_OTHERS])) + 2
    lines = [
        f"usage: {PROGRAM} COMMAND …",
        "",
        "Text corpora into token shards; GLM trained on them.",
    ]
    groups = {
        title: {command.name: command.about for command in commands}
        for title, commands in GROUPS.items()
    }
    for title, commands in {**groups, "more": _OTHERS}.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<{width}}{about}" for name, about in commands.items()]
    return [
        *lines,
        "",
        f"{PROGRAM} COMMAND --help lists the flags of one; --version says which this is.",
    ]


def _unknown(name: str) -> str:
    """Return what to say of a word that is no command."""
    modules = {command.module: command.name for command in COMMANDS.values()}
    if name in modules:
        hint = f"did you mean {modules[name]}?"
    else:
        hint = did_you_mean(name, [*COMMANDS, *_OTHERS], most=2)
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
