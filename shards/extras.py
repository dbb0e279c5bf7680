"""Extras: to which of them a missing module belongs, and the command that installs it."""

import importlib.util
import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from shards.program import PROGRAM, called_program, started_module

_DEVELOPERS = frozenset({"dev", "lint", "test"})
"""Extras that no command needs."""

_REQUIREMENT = re.compile(r"([\w.-]+).*;\s*extra == ['\"]([\w-]+)['\"]")
_PIP = re.compile(r"\bpip\s+install\s+(?:'([\w\[\],.-]+)'|([a-z][\w.-]*\w))")
_CACHED = re.compile(r"(archive|environments)-v\d+\Z")
"""Folders of uv's cache in which uvx makes environments."""

_REFUSED = 2
"""As in `shards.command`, which has more to import."""


def missing_extra(error: BaseException) -> str | None:
    """Return what to tell if an error is for a module of an extra that is not installed.

    None is for all other errors, also for one in a module that is installed: a part of it may be
    missing, or broken.
    """
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    module = error.name.partition(".")[0]
    extra = _extra_of(module)
    if extra is None or importlib.util.find_spec(module) is not None:
        return None
    return installable(
        f"{module} is not installed; the extra {extra!r} brings it: "
        f"pip install '{PROGRAM}[{extra}]'"
    )


@contextmanager
def extras_named() -> Iterator[None]:
    """Say in the error of an import which extra is missing, and how it is installed.

    Raises:
        ModuleNotFoundError: A module of an extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        told = missing_extra(error)
        if told is None:
            raise
        raise ModuleNotFoundError(told, name=error.name) from None


def tell_missing() -> None:
    """Let the import of a command end with a paragraph if an extra is missing.

    It has no effect but while `python -m` looks for a command.
    """
    if sys.argv[:1] == ["-m"] and sys.excepthook is sys.__excepthook__:
        sys.excepthook = end_if_missing


def end_if_missing(
    kind: type[BaseException], error: BaseException, frames: TracebackType | None
) -> None:
    """Tell of a missing extra and end with code 2; show any other error as Python does."""
    told = missing_extra(error)
    if told is None:
        sys.__excepthook__(kind, error, frames)
        return
    from shards.shown import tell  # noqa: PLC0415 - seldom needed

    tell(f"{called_program(started_module())}: {told}")
    sys.exit(_REFUSED)


def installable(text: str) -> str:
    """Return a text of ours whose `pip install` is the command for where this Python lives.

    That is pipx's or uv's in an environment of theirs, where there is no pip on the path.
    """
    return _PIP.sub(lambda found: _command(found[1] or found[2]) or found[0], text)


def _command(wanted: str) -> str | None:
    """Return what installs a requirement here; None for pip."""
    home = Path(sys.prefix)
    if (home / "pipx_metadata.json").exists():
        return f"pipx inject {shlex.quote(home.name)} {shlex.quote(wanted)}"
    receipt = home / "uv-receipt.toml"
    if receipt.exists():
        return _uv_tool(receipt, wanted)
    if _CACHED.match(home.parent.name) and _extras(wanted):
        return shlex.join(["uvx", "--from", _requirement(_extras(wanted)), PROGRAM])
    return None


def _uv_tool(receipt: Path, wanted: str) -> str:
    """Return the command that installs a tool of uv again, with all that it has and more.

    Args:
        receipt: What uv has noted of it.
        wanted: A package, or an extra of this one, as `corpusmill[train]`.
    """
    import tomllib  # noqa: PLC0415 - seldom needed

    extras, others = [], []
    for entry in tomllib.loads(receipt.read_text("utf-8"))["tool"]["requirements"]:
        if entry["name"] == PROGRAM:
            extras += entry.get("extras", ())
        else:
            others.append(f"--with={entry['name']}")
    if more := _extras(wanted):
        extras += [extra for extra in more if extra not in extras]
    else:
        others.append(f"--with={wanted}")
    return shlex.join(["uv", "tool", "install", _requirement(extras), *others])


def _extras(wanted: str) -> list[str]:
    """Return the extras of this package that a requirement names."""
    found = re.fullmatch(rf"{PROGRAM}\[(.+)\]", wanted)
    return found[1].split(",") if found else []


def _requirement(extras: Sequence[str]) -> str:
    """Return this package with extras, from where it was installed."""
    from importlib import metadata  # noqa: PLC0415 - seldom needed

    name = f"{PROGRAM}[{','.join(extras)}]" if extras else PROGRAM
    origin = json.loads(metadata.distribution(PROGRAM).read_text("direct_url.json") or "{}")
    if "url" not in origin:
        return name
    repository = origin.get("vcs_info", {})
    revision = repository.get("requested_revision")
    kind = f"{repository['vcs']}+" if repository else ""
    return f"{name} @ {kind}{origin['url']}{f'@{revision}' if revision else ''}"


def _extra_of(module: str) -> str | None:
    """Return the extra that brings a module, as the installed package says; None without one."""
    from importlib import metadata  # noqa: PLC0415 - seldom needed

    try:
        requirements = metadata.requires(PROGRAM) or ()
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        return None
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement)
        if found and found[2] not in _DEVELOPERS and _module(found[1]) == module:
            return found[2]
    return None


def _module(distribution: str) -> str:
    """Return the module of a package, which here always has its name."""
    return re.sub(r"[-.]+", "_", distribution).lower()
