"""Replaces the libraries that define the correct result with faster ones, where both agree."""

import logging
from collections.abc import Callable
from functools import cache
from typing import TypeVar

_Fast = TypeVar("_Fast")

_LOG = logging.getLogger(__name__)


def agreeing(
    name: str,
    make: Callable[[], _Fast],
    differs: Callable[[_Fast], str | None],
    *,
    instead: str,
) -> _Fast | None:
    """Return a fast implementation if it agrees with the slow one, else None.

    If the fast one is not used, a log line explains why.

    Args:
        name: The name of the fast library in the log line, such as "fastokens 0.3.5".
        make: Creates the fast implementation.
        differs: Tries the fast implementation on a few inputs, and returns a sentence about the
            first difference, or None.
        instead: The name of the slow library in the log line.
    """
    try:
        fast = make()
        difference = differs(fast)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  a panic in Rust is no Exception
        difference = (
            f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0].rstrip('.')}"
        )
    if difference is None:
        return fast
    _warn(f"{name} is not used: {difference}. {instead} takes its place.")
    return None


@cache
def _warn(line: str) -> None:
    """Log a warning once."""
    _LOG.warning("%s", line)
