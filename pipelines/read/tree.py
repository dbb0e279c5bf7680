"""Searches a folder on a local disk for matching files, and notes unreadable folders.

A file has one name, however many links lead to it: the path that passes through the fewest links,
or the first of several such paths, compared by components. The name depends on the tree alone, not
on the order in which a disk lists a folder. (A hard link counts as a file, not as a link.)

    folder search   real folders first, then folders behind one link, then two ...; each folder once
    glob            a wildcard crosses links to folders, but ** does not, as in pathlib
"""

import errno
import functools
import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from pipelines.read.input_file import shown
from pipelines.read.names import is_hidden, is_named
from shards.errors import UserError

_NOT_THERE = {errno.ENOENT, errno.ENOTDIR}
_OUR_LIMITS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


@dataclass(frozen=True)
class Findings:
    """The results of a search."""

    matches: set[Path] = field(default_factory=set)
    """The matching paths that are not folders; some may be unreadable."""
    refused: dict[Path, str] = field(default_factory=dict)
    """The folders that cannot be searched, with the reasons."""
    broken_links: set[Path] = field(default_factory=set)
    """The links that lead to nothing or to themselves and do not match."""
    unmatched: list[Path] = field(default_factory=list)
    """The paths that a folder search found but that neither match nor are folders."""
    hidden: set[Path] = field(default_factory=set)
    """The hidden files and folders; hidden folders are not searched."""

    def is_folder(self, path: Path) -> bool:
        """Return whether a path leads to a folder; record the path if that cannot be determined."""
        try:
            return stat.S_ISDIR(path.stat().st_mode)
        except OSError as error:
            self.refuse(path, error)
            return False

    def add(self, path: Path, *, matches: Callable[[Path], bool]) -> None:
        """Record a path that is not a folder, or a link that does not lead to a folder."""
        if is_hidden(path.name):
            self.hidden.add(path)
        elif matches(path):
            self.matches.add(path)
        elif os.path.exists(path):  # noqa: PTH110 - Path.exists raises some errors
            self.unmatched.append(path)
        else:
            self.is_folder(path)  # the link may lead to a folder

    def refuse(self, path: Path, error: OSError) -> None:
        """Note that a folder, or a link that may lead to one, cannot be searched."""
        if error.errno in {*_NOT_THERE, errno.ELOOP} and _is_link(path):
            self.broken_links.add(path)
        else:
            self.refused[path] = why_unreadable(path, error, what="listed")


def search_folder(folder: Path, matches: Callable[[Path], bool]) -> Findings:
    """Return the matches below a folder, including those in subfolders and linked folders."""
    found = Findings()
    seen: set[str] = set()
    layer = [folder]
    while layer:
        links: list[Path] = []
        for start in layer:
            real_start = os.path.realpath(start)
            for place, folders, others in _walk(start, found):
                real = f"{real_start}{str(place).removeprefix(str(start))}"
                if real in seen:
                    folders.clear()
                    continue
                seen.add(real)
                links += [place / name for name in folders if _is_link(place / name)]
                for path in (place / name for name in others):
                    found.add(path, matches=matches)
        # Links of one layer are sorted: a target that two links share is named after the first.
        layer = sorted(links)
    return found


def expand_glob(root: Path, parts: Sequence[str]) -> Findings:
    """Return the matches of a glob below a folder.

    Args:
        root: The folder.
        parts: The components of the glob; at least one.
    """
    found = Findings()
    places = {root}
    for number, part in enumerate(parts, start=1):
        folders = [place for place in places if found.is_folder(place)]
        step = functools.partial(_step, part=part, is_last=number == len(parts), into=found)
        places = {path for folder in folders for path in step(folder)}
    found.matches.update(
        place
        for place in places
        if not os.path.isdir(place)  # noqa: PTH112 - Path.is_dir raises some errors
    )
    return found


def _walk(start: Path, into: Findings) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Yield each folder from `start` down without following links, like `os.walk`."""

    def refuse(error: OSError) -> None:
        into.refuse(Path(error.filename or start), error)

    for place, folders, others in os.walk(start, onerror=refuse):
        into.hidden.update(Path(place) / name for name in folders if is_hidden(name))
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield Path(place), folders, others


def _step(folder: Path, *, part: str, is_last: bool, into: Findings) -> Sequence[Path]:
    """Return the matches of one component of a glob in a folder."""
    if part == "**":
        return [place for place, _, _ in _walk(folder, into)]
    try:
        if glob.has_magic(part):
            below = [path for path in folder.iterdir() if fnmatchcase(path.name, part)]
            hidden = {p for p in below if is_hidden(p.name) and not is_named(p.name, part)}
            # The last component matches files; all others match folders.
            into.hidden.update(path for path in hidden if os.path.isdir(path) != is_last)  # noqa: PTH112
            return [path for path in below if path not in hidden]
        (folder / part).lstat()
    except FileNotFoundError:
        return []
    except OSError as error:
        into.refuse(folder, error)
        return []
    return [folder / part]


def one_path_per_file(paths: Iterable[Path], root: Path) -> list[Path]:
    """Return paths in order, with only one path for each file.

    Args:
        paths: Paths below `root`.
        root: The folder of the paths; links on the way to this folder do not count.
    """
    real_folder = functools.cache(os.path.realpath)
    names: dict[str, list[Path]] = {}
    for path in paths:
        is_link = _is_link(path)
        real = os.path.realpath(path) if is_link else f"{real_folder(path.parent)}/{path.name}"
        names.setdefault(real, []).append(path)
    return sorted(
        min(same, key=lambda path: (_num_links(path, root), path)) if len(same) > 1 else same[0]
        for same in names.values()
    )


def _is_link(path: Path) -> bool:
    # Path.is_symlink raises if permission is denied.
    return os.path.islink(path)  # noqa: PTH114 - see above


def _num_links(path: Path, root: Path) -> int:
    below = path.relative_to(root)
    on_the_way = (below, *below.parents)
    return sum(_is_link(root / part) for part in on_the_way if part.parts)


def why_unreadable(path: Path, error: OSError, *, what: str) -> str:
    """Return why an input cannot be read, as the end of a sentence.

    Args:
        path: The file or folder.
        error: The error of the system.
        what: The operation that failed: "listed" or "read".

    Raises:
        UserError: This process has reached a limit of its own; the input is not at fault.
    """
    if error.errno in _OUR_LIMITS:
        raise UserError(
            f"The input {shown(path)} cannot be {what}: {error.strerror}. Raise this limit and run "
            "the same command again."
        ) from error
    if error.errno in _NOT_THERE:
        if _is_link(path):
            return f"is a broken link to {shown(path.readlink())}"
        return "was deleted while the input was listed: run the command again"
    if error.errno == errno.ELOOP:
        return "is a link that leads to itself"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"cannot be {what}: permission denied"
    return f"cannot be {what} ({error.strerror or error})"
