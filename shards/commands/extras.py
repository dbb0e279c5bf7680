"""Finds the extra that a missing module belongs to."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from shards.commands.table import PROGRAM

_REQUIREMENT = re.compile(r"([\w.-]+).*;\s*extra == ['\"](?!(?:dev|lint|test)['\"])([\w-]+)['\"]")
"""Matches the requirement of an extra that a command may need."""

_REFUSED = 2
"""Equal to EXIT_REFUSED of `shards.commands.command`, a module that takes longer to import."""


def missing_extra(error: BaseException) -> str | None:
    """Return the message for an error about a module whose extra is not installed.

    For all other errors it returns None, including those raised inside an installed module, which
    may be incomplete or broken.
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
def missing_extras_explained() -> Iterator[None]:
    """Make an import error name the missing extra and say how to install it.

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
    """Install a hook that ends an import with a readable message if an extra is missing.

    The hook only acts while `python -m` looks for a command.
    """
    if sys.argv[:1] == ["-m"]:
        sys.excepthook = report_missing_extra


def report_missing_extra(
    kind: type[BaseException], error: BaseException, frames: TracebackType | None
) -> None:
    """Report a missing extra and exit with code 2; show any other error as Python does."""
    told = missing_extra(error)
    if told is None:
        sys.__excepthook__(kind, error, frames)
        return
    from shards.commands.output import print_message  # noqa: PLC0415 - seldom needed

    words = sys.orig_argv
    print_message(f"{words[words.index('-m') + 1]}: {told}")
    sys.exit(_REFUSED)


def _extra_of(module: str) -> str | None:
    """Return the extra that installs a module, according to the package's metadata, or None.

    Every package listed there has a module of the same name.
    """
    from importlib import metadata  # noqa: PLC0415 - seldom needed

    try:
        requirements = metadata.requires(PROGRAM) or ()
    except metadata.PackageNotFoundError:  # a checkout that is not installed
        return None
    found = [match for line in requirements if (match := _REQUIREMENT.match(line))]
    extras = {re.sub(r"[-.]+", "_", each[1]).lower(): each[2] for each in reversed(found)}
    return extras.get(module)
