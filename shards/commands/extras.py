"""Extras: to which of them a missing module belongs."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from shards.commands.table import PROGRAM

_REQUIREMENT = re.compile(r"([\w.-]+).*;\s*extra == ['\"](?!(?:dev|lint|test)['\"])([\w-]+)['\"]")
"""Of an extra that a command may need."""

_REFUSED = 2
"""As in `shards.commands.command`, which has more to import."""


def missing_extra(error: BaseException) -> str | None:
    """Return the message for a module of an extra that is not installed.

    None is for all other errors, also for one in a module that is installed: a part of it may be
    missing, or broken.
    """
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    module = error.name.partition(".")[0]
    extra = _extra_of(module)
    if extra is None or importlib.util.find_spec(module) is not None:
        return None
    return (
        f"{module} is not installed; the extra {extra!r} installs it: "
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


def install_missing_extra_hook() -> None:
    """Let the import of a command end with a paragraph if an extra is missing.

    It has no effect but while `python -m` looks for a command.
    """
    if sys.argv[:1] == ["-m"]:
        sys.excepthook = end_if_missing


def end_if_missing(
    kind: type[BaseException], error: BaseException, frames: TracebackType | None
) -> None:
    """Tell of a missing extra and end with code 2; show any other error as Python does."""
    told = missing_extra(error)
    if told is None:
        sys.__excepthook__(kind, error, frames)
        return
    from shards.commands.shown import tell  # noqa: PLC0415 - seldom needed

    words = sys.orig_argv
    tell(f"{words[words.index('-m') + 1]}: {told}")
    sys.exit(_REFUSED)


def _extra_of(module: str) -> str | None:
    """Return the extra that installs a module, by the metadata of the package; None without one.

    The module of a package here always has its name.
    """
    from importlib import metadata  # noqa: PLC0415 - seldom needed

    try:
        requirements = metadata.requires(PROGRAM) or ()
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        return None
    found = [match for line in requirements if (match := _REQUIREMENT.match(line))]
    extras = {re.sub(r"[-.]+", "_", each[1]).lower(): each[2] for each in reversed(found)}
    return extras.get(module)
