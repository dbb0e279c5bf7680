"""A file that was found for an input, wherever it lies."""

from collections.abc import Sequence
from dataclasses import dataclass

NAMES_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Found:
    """A file, before it is told to which source it belongs."""

    path: str
    """Absolute path, or URL without user and password."""
    relative: str
    """Posix path below the input's root."""
    bytes: int
    """Size of the file as stored."""
    mtime_ns: int = 0
    """Time of the last change in nanoseconds; 0 for a URL."""
    etag: str = ""
    """What a server says of the file's version; empty for a local file."""


def some_of(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"


def any_of(patterns: Sequence[str]) -> str:
    """Return patterns as a sentence names them."""
    return " or ".join(map(repr, patterns))
