"""A file of an input, wherever it lies, and the words that messages have for several."""

import logging
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import PurePath

from pipelines.read.endings import COMPRESSIONS
from shards.errors import UserError
from shards.shown import visible_line
from shards.storage.address import is_url

NAMES_SHOWN = 5

_LOG = logging.getLogger("corpusmill")
_MAX_CHARACTERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """One file of an input."""

    source: str = ""
    """Name of the input; empty until it is known."""
    path: str
    """Absolute path, or URL without user and password. Operational: no part of any identity."""
    relative: str
    """Posix path below the input's root; for the hub: OWNER/NAME@COMMIT/path."""
    bytes: int
    """Size of the file as stored."""
    mtime_ns: int = 0
    """Time of the last change in nanoseconds; 0 for a URL. Operational."""
    etag: str = ""
    """The server's mark for the file's version; empty for a local file. Operational."""

    @property
    def name(self) -> tuple[str, str]:
        """Source and path: what a dataset knows it by."""
        return self.source, self.relative

    @property
    def version(self) -> tuple[int, int, str]:
        """Size, time and etag: what tells it from a later version, wherever it lies."""
        return self.bytes, self.mtime_ns, self.etag


@dataclass(frozen=True, kw_only=True)
class FoundFiles:
    """What one path of an input names."""

    root: str
    """The folder that the files' relative paths begin at; hf: for datasets of the hub."""
    files: list[InputFile]
    refused: dict[InputFile, str] = field(default_factory=dict)
    """What cannot be read, with the reason, as the end of a sentence: files, and folders, whose
    paths end with a slash."""
    unmatched: list[str] = field(default_factory=list)
    """Files of a folder whose names do not match."""
    hidden: list[str] = field(default_factory=list)
    """Files, and folders with a slash, that have to be named to be read."""
    is_file: bool = False
    """The path is that of a file, which is read whatever its name."""


def joined(paths: Sequence[FoundFiles]) -> FoundFiles:
    """Return what several paths name, relative to the folder that they have in common.

    Raises:
        UserError: They have none, as a path and a URL.
    """
    if len(paths) == 1:
        return paths[0]
    root = _common_folder([path.root for path in paths])
    whole = FoundFiles(root=root, files=[])
    for path in paths:
        below = path.root.removeprefix(root).strip("/")
        start = f"{below}/" * bool(below)
        whole.files.extend(_moved(file, start) for file in path.files)
        whole.refused.update({_moved(file, start): why for file, why in path.refused.items()})
        whole.unmatched.extend(path.unmatched)
        whole.hidden.extend(path.hidden)
    return whole


def _moved(file: InputFile, start: str) -> InputFile:
    return replace(file, relative=f"{start}{file.relative}")


def _common_folder(roots: Sequence[str]) -> str:
    """Return the deepest folder that contains all of some folders."""
    parts = zip(*(root.split("/") for root in roots), strict=False)
    same = [names[0] for names in takewhile(lambda names: len({*names}) == 1, parts)]
    host = 3  # parts of s3://bucket
    if not same or (any(map(is_url, roots)) and len(same) < host):
        raise UserError(
            f"The inputs {shown(roots[0])} and {shown(next(r for r in roots if r != roots[0]))} "
            "have no folder in common: give each input a name, as in --input news=PATH --input "
            "books=PATH."
        )
    return "/".join(same)


def common_start(texts: Sequence[str]) -> str:
    """Return the characters that all of some texts begin with."""
    return os.path.commonprefix([min(texts), max(texts)])  # noqa: RUF071 - of any texts


def warn_of_links(where: str, links: Collection[str]) -> None:
    """Log which links are passed over because they lead to no file, if there are any."""
    if links:
        _LOG.warning(
            "%s: links that lead to no file, and whose names do not match, are passed over: %s",
            shown(where),
            some_of([shown(link) for link in sorted(links)]),
        )


def some_of(names: Sequence[str], *, between: str = ", ") -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{between.join(names[:NAMES_SHOWN])}{more}"


def shown(name: str | PurePath) -> str:
    """Return a name as messages have it: on one line, visible, not longer than a paragraph."""
    text = visible_line(str(name))
    left_out = len(text) - _MAX_CHARACTERS
    return text if left_out <= 0 else f"{text[:_MAX_CHARACTERS]}... ({left_out} more characters)"


def any_of(patterns: Sequence[str]) -> str:
    """Return alternatives as a sentence names them: 'a' or 'b', with archives of them told once."""
    packed = [name for name in patterns if all(name + end in patterns for end in COMPRESSIONS)]
    archives = {name + end for name in packed for end in COMPRESSIONS}
    rest = [repr(name) for name in patterns if name not in {*packed, *archives}]
    if packed:
        rest.insert(0, f"{' or '.join(map(repr, packed))}, also with {', '.join(COMPRESSIONS)},")
    return " or ".join(rest)
