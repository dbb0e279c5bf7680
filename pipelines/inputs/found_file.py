"""A file found for an input, wherever it lies, and the words that messages have for several."""

from collections.abc import Sequence
from dataclasses import dataclass

NAMES_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class FoundFile:
    """A file that is not yet assigned to a source."""

    path: str
    """Absolute path, or URL without user and password."""
    relative: str
    """Posix path below the input's root."""
    bytes: int
    """Size of the file as stored."""
    mtime_ns: int = 0
    """Time of the last change in nanoseconds; 0 for a URL."""
    etag: str = ""
    """The server's mark for the file's version; empty for a local file."""


def some_of(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"


def any_of(patterns: Sequence[str]) -> str:
    """Return alternatives as a sentence names them: 'a' or 'b'."""
    return " or ".join(map(repr, patterns))
