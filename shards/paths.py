"""Checks the paths of a dataset's files, so that none leads out of its folder.

A path that is read from a file (a manifest, a record) or made of a name that somebody chose (a
source) is checked here before it is used: it must be relative, must not lead out of the folder by
its parts or by links, and must mean the same on every file system.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated

from shards.errors import DamageError, UserError
from shards.storage.disk import disk_errors_explained
from shards.storage.remote import AnyPath

_PART = r"(?!\.{1,2}(?:/|\Z))[^/\\\x00-\x1f\x7f\ud800-\udfff]+"
_RELATIVE = re.compile(rf"{_PART}(?:/{_PART})*")

_MAX_CHARS = 1000
"""The maximum number of characters of a path: several times more than any path here needs, and less
than a file system allows."""

_SOURCE = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
"""ASCII alone: letters of other alphabets have several spellings that look the same (NFC, NFD), are
percent-encoded in URLs, and every file system compares them differently."""

_MAX_SOURCE_CHARS = 100
"""The maximum number of characters of a source: a file name has at most 255 bytes and contains more
than the source."""

FOLDERS = ("audit", "dropped", "rejects", "signatures")
"""The folders of a generation besides those of sources."""

_DEVICES = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9])(\..*)?")
"""Names that Windows treats as devices, in any folder and with any extension."""


def check_relative(path: str) -> None:
    """Check that a path means a file below the folder that it is relative to.

    Raises:
        ValueError: It is absolute, is too long, has a part that is empty, `.` or `..`, or
            characters that no path here has.
    """
    if not _RELATIVE.fullmatch(path) or len(path) > _MAX_CHARS:
        raise ValueError(f"{path[:200]!r} is not a path below a folder")


RelativePath = Annotated[str, check_relative]
"""The type of a record's field (records.py) that is a relative path."""


def check_name(name: str) -> None:
    """Check that a name is valid for a file or a folder.

    Raises:
        ValueError: The name is invalid, such as `..` or `a/b`.
    """
    check_relative(name)
    if "/" in name:
        raise ValueError(f"{name[:200]!r} is not the name of a file or folder")


Name = Annotated[str, check_name]
"""The type of a record's field (records.py) that is the name of one file or folder."""


def check_stem(stem: str, suffixes: Iterable[str]) -> None:
    """Check that a stem and each of the suffixes form the name of a file in one folder.

    Raises:
        ValueError: A name is invalid; the message contains it.
    """
    for suffix in suffixes:
        check_name(f"{stem}.{suffix}")


def join_checked(folder: AnyPath, *names: str) -> AnyPath:
    """Return the path of a file below a folder; every name is one part of the path.

    Raises:
        ValueError: A name is invalid, such as `..` or `a/b`.
    """
    path = folder
    for name in names:
        check_name(name)
        path = path / name
    return path


def check_links(directory: AnyPath, paths: Iterable[str], *, files: bool = True) -> None:
    """Check that no path in a folder leaves it through a link; only the paths' parents are listed.

    Args:
        directory: The folder; behind a URL there are no links.
        paths: Paths relative to the folder that pass `check_relative`; they need not exist.
        files: Whether to check the files themselves and not only their folders.

    Raises:
        DamageError: A link leads out of the folder.
    """
    if not isinstance(directory, Path):
        return
    names: defaultdict[Path, set[str]] = defaultdict(set)
    for path in paths:
        names[(directory / path).parent].add(path.rpartition("/")[2])
    inside = directory.resolve()
    for folder in sorted(names):
        links = names[folder] & _links_in(folder) if files else set()
        for way in (folder, *(folder / link for link in sorted(links))):
            if not (target := Path(os.path.realpath(way))).is_relative_to(inside):
                raise DamageError(
                    f"{way} is a link to {target}, outside {inside}: all files of a dataset must "
                    "be in its folder. Replace the link with the files that it points to (cp -rL)."
                )


def _links_in(folder: Path) -> set[str]:
    with disk_errors_explained(folder):
        try:
            with os.scandir(folder) as entries:
                return {entry.name for entry in entries if entry.is_symlink()}
        except (FileNotFoundError, NotADirectoryError):  # missing files are reported elsewhere
            return set()


def check_sources(names: Collection[str], *, present: Collection[str] = ()) -> None:
    """Check that the sources of a run can all be subfolders of one folder on any file system.

    Args:
        names: The names of the run's sources.
        present: The names of the sources that the dataset already has, which are accepted.

    Raises:
        UserError: A name is not portable, or two names differ only in upper and lower case.
    """
    every = {*names, *present}
    counts = Counter(name.lower() for name in every)
    for name in sorted(set(names) - set(present)):
        if not _is_portable(name):
            raise UserError(
                f"the source name {name[:200]!r} is not allowed: it becomes the name of a folder "
                f"on any file system. Use up to {_MAX_SOURCE_CHARS} letters A to Z, digits, "
                "underscores, dashes and dots, without a dash or dot first or a dot last. Names of "
                f"Windows devices and {', '.join(FOLDERS)} are not allowed either: for example "
                "--input news=/data/news"
            )
        if counts[name.lower()] > 1:
            other = min(each for each in every - {name} if each.lower() == name.lower())
            raise UserError(
                f"the sources {name!r} and {other!r} differ only in upper and lower case, and "
                "would be the same folder on some file systems: give one of them another name"
            )


def _is_portable(name: str) -> bool:
    reserved = name.lower() in FOLDERS or _DEVICES.fullmatch(name.lower())
    return bool(_SOURCE.fullmatch(name) and len(name) <= _MAX_SOURCE_CHARS and not reserved)
