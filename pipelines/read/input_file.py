"""An input file, local or remote, and helpers that word messages about files."""

import logging
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pipelines.read.names import COMPRESSIONS
from shards.commands.output import visible_line

NAMES_SHOWN = 5

_LOG = logging.getLogger("corpusmill")
_MAX_CHARACTERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """One file of an input."""

    source: str = ""
    """The name of the input; empty until the input is known."""
    path: str
    """The absolute path, or the URL without user and password; not part of any identity."""
    relative: str
    """The POSIX path below the input's root; for the hub, OWNER/NAME@COMMIT/path."""
    bytes: int
    """The size of the file as stored."""
    mtime_ns: int = 0
    """The time of the last change in nanoseconds; 0 for a URL. It is not part of any identity."""
    etag: str = ""
    """The server's tag of the file's version; empty for a local file. It is not part of any
    identity."""

    @property
    def name(self) -> tuple[str, str]:
        """The source and relative path, which identify the file in a dataset."""
        return self.source, self.relative

    @property
    def version(self) -> tuple[int, int, str]:
        """The size, time and etag, which distinguish the versions of a file."""
        return self.bytes, self.mtime_ns, self.etag


def common_start(texts: Sequence[str]) -> str:
    """Return the longest common prefix of some texts."""
    return os.path.commonprefix([min(texts), max(texts)])  # noqa: RUF071 - of any texts


def warn_of_links(where: str, links: Collection[str]) -> None:
    """Warn of links that are skipped because they lead to no file, if there are any."""
    if links:
        _LOG.warning(
            "%s: skipped broken links whose names do not match: %s",
            shown(where),
            some_of([shown(link) for link in sorted(links)]),
        )


def some_of(names: Sequence[str], *, between: str = ", ") -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{between.join(names[:NAMES_SHOWN])}{more}"


def shown(name: str | PurePath) -> str:
    """Return a name for a message: on one line, printable, and shortened if it is very long."""
    text = visible_line(str(name))
    left_out = len(text) - _MAX_CHARACTERS
    return text if left_out <= 0 else f"{text[:_MAX_CHARACTERS]}... ({left_out} more characters)"


def any_of(patterns: Sequence[str]) -> str:
    """Return patterns as alternatives, such as 'a' or 'b', but name compressed forms only once."""
    packed = [name for name in patterns if all(name + end in patterns for end in COMPRESSIONS)]
    archives = {name + end for name in packed for end in COMPRESSIONS}
    rest = [repr(name) for name in patterns if name not in {*packed, *archives}]
    if packed:
        rest.insert(0, f"{' or '.join(map(repr, packed))}, also with {', '.join(COMPRESSIONS)},")
    return " or ".join(rest)
