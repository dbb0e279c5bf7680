"""Faster libraries instead of the ones that define what is right, where they agree."""

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
    """Return a fast way to do something if it agrees with the slow one, else None.

    Where it is not used, a line says why.

    Args:
        name: Its name in the line, such as "fastokens 0.3.5".
        make: Makes it.
        differs: Tries it on a few inputs, and returns a sentence on where it differs, or None.
        instead: The slow library's name in the line.
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
    """Say something once."""
    _LOG.warning("%s", line)
