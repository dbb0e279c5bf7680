"""Finds the versions of libraries, and uses faster libraries if they agree with the usual ones."""

import importlib.metadata
import logging
from collections.abc import Callable
from functools import cache
from typing import TypeVar

_Fast = TypeVar("_Fast")

_LOG = logging.getLogger(__name__)


def library_version(name: str) -> str:
    """Return the name of an installed library and its version, such as "jieba 0.42.1"."""
    return f"{name} {importlib.metadata.version(name)}"


def verified(
    name: str,
    build: Callable[[], _Fast],
    find_difference: Callable[[_Fast], str | None],
    *,
    reference: str,
) -> _Fast | None:
    """Return a fast implementation if it agrees with the slow one, else None.

    If the fast one is not used, a log line explains why.

    Args:
        name: The name of the fast library in the log line, such as "fastokens 0.3.5".
        build: Creates the fast implementation.
        find_difference: Tries the fast implementation on a few inputs, and describes the first
            difference; returns None if there is none.
        reference: The name of the slow library in the log line.
    """
    try:
        fast = build()
        difference = find_difference(fast)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  a panic in Rust is no Exception
        difference = (
            f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0].rstrip('.')}"
        )
    if difference is None:
        return fast
    _warn(f"{name} is not used: {difference}. {reference} is used instead.")
    return None


@cache
def _warn(line: str) -> None:
    """Log a warning, but only once per process."""
    _LOG.warning("%s", line)
