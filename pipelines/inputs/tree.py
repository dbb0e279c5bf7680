"""What lies below a folder on a local disk: the files that match, and what cannot be looked at.

A file has one name, however many links lead to it: the one that passes through the fewest links, of
several such the first by the parts of its path. It is a function of the tree alone; the order in
which a disk lists a folder has no part in it. (A hard link is no link in this sense but a file.)

    folder search   real folders first, then those behind one link, behind two ...; each once
    glob            a wildcard crosses links to folders, ** does not, as in pathlib
"""

import errno
import glob
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

from pipelines.inputs.found_file import shown
from shards.errors import UserError

NOT_SEARCHED = frozenset({".git", ".no_exist", "lost+found"})
"""Folders that are searched only if they are named: what programs keep there is no corpus.

git-annex keeps the very files in .git that the links of a work tree lead to; in .no_exist the cache
of the Hugging Face hub has an empty file for each that a repository lacks.
"""

GONE = "was deleted while the input was listed: run the command again"

_NOT_THERE = {errno.ENOENT, errno.ENOTDIR}
_OUR_LIMITS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}


@dataclass(frozen=True)
class Findings:
    """What a search has met."""

    matches: dict[Path, str] = field(default_factory=dict)
    """What matches and is no folder; not all of it need be readable. The real path, where the
    search knows it, else nothing."""
    refused: dict[Path, str] = field(default_factory=dict)
    """Folders that cannot be searched, and why."""
    astray: list[Path] = field(default_factory=list)
    """Links to nothing, or to themselves, that do not match."""

    def refuse(self, path: Path, error: OSError) -> None:
        """Note that a folder, or a link that may lead to one, cannot be searched."""
        if error.errno in _NOT_THERE or error.errno == errno.ELOOP:
            if path.is_symlink():
                self.astray.append(path)
            else:
                self.refused[path] = GONE
        else:
            self.refused[path] = why_not(path, error, what="searched")


class _Kind(Enum):
    FOLDER = "a folder"
    LINKED = "a link to a folder"
    FILE = "anything else"
    LINKED_FILE = "a link to anything else"
    BROKEN = "a link that cannot be followed"


def search(folder: Path, matches: Callable[[Path], bool]) -> Findings:
    """Return what matches below a folder, subfolders and links to folders included."""
    findings = Findings()
    seen: set[str] = set()
    starts = [folder]
    while starts:
        # The links of one layer in order: what two of them lead to has its name of the first.
        starts = sorted(
            link for start in starts for link in _walk(start, matches, seen=seen, into=findings)
        )
    return findings


def _walk(
    start: Path, matches: Callable[[Path], bool], *, seen: set[str], into: Findings
) -> Iterator[Path]:
    """Search a folder without following links; yield the links to folders in it."""
    waiting = [(start, os.path.realpath(start))]
    while waiting:
        folder, real = waiting.pop()
        if real in seen:
            continue
        seen.add(real)
        for name, kind in _entries(folder, into):
            path = folder / name
            if kind is _Kind.LINKED:
                yield path
            elif kind is _Kind.FOLDER:
                waiting.append((path, f"{real}/{name}"))
            elif matches(path):
                into.matches[path] = f"{real}/{name}" if kind is _Kind.FILE else ""
            elif kind is _Kind.BROKEN:
                _follow(path, into)


def expand(root: Path, parts: Sequence[str]) -> Findings:
    """Return what a glob below a folder matches.

    Args:
        root: The folder.
        parts: The components of the glob, one at least.
    """
    findings = Findings()
    _expand(root, parts, findings)
    return findings


def _expand(folder: Path, parts: Sequence[str], into: Findings) -> None:
    part, *rest = parts
    if part == "**":
        for below in _folders(folder, into) if rest else ():
            _expand(below, rest, into)
        return
    for path, kind in _step(folder, part, into):
        if not rest:
            if kind in (_Kind.FILE, _Kind.LINKED_FILE, _Kind.BROKEN):
                into.matches[path] = ""
        elif kind in (_Kind.FOLDER, _Kind.LINKED):
            _expand(path, rest, into)
        elif kind is _Kind.BROKEN:
            _follow(path, into)


def _folders(folder: Path, into: Findings) -> Iterator[Path]:
    """Yield a folder and all below it, links not followed."""
    waiting = [folder]
    while waiting:
        folder = waiting.pop()
        yield folder
        waiting += [folder / name for name, kind in _entries(folder, into) if kind is _Kind.FOLDER]


def _step(folder: Path, part: str, into: Findings) -> Iterator[tuple[Path, _Kind]]:
    """Yield what one component of a glob matches in a folder."""
    if glob.has_magic(part):
        for name, kind in _entries(folder, into):
            if fnmatchcase(name, part):
                yield folder / name, kind
        return
    path = folder / part
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        if error.errno not in _NOT_THERE:
            into.refuse(folder, error)
        return
    if stat.S_ISLNK(mode):
        yield path, _behind(path)
    else:
        yield path, _Kind.FOLDER if stat.S_ISDIR(mode) else _Kind.FILE


def _entries(folder: Path, into: Findings) -> list[tuple[str, _Kind]]:
    """Return the entries of a folder by name; none, and a note, if it cannot be searched.

    Those of NOT_SEARCHED are left out.
    """
    try:
        with os.scandir(folder) as entries:
            kinds = {entry.name: _kind(entry) for entry in entries}
        if kinds:
            # A folder may be listed without the right to reach what is in it.
            os.stat(f"{folder}/.")  # noqa: PTH116 - Path leaves the dot out
    except OSError as error:
        into.refuse(folder, error)
        return []
    return sorted(
        (
            (name, kind)
            for name, kind in kinds.items()
            if name not in NOT_SEARCHED or kind not in (_Kind.FOLDER, _Kind.LINKED)
        ),
        key=lambda entry: entry[0],
    )


def _kind(entry: os.DirEntry[str]) -> _Kind:
    if entry.is_symlink():
        return _behind(Path(entry.path))
    return _Kind.FOLDER if entry.is_dir(follow_symlinks=False) else _Kind.FILE


def _behind(link: Path) -> _Kind:
    try:
        return _Kind.LINKED if stat.S_ISDIR(link.stat().st_mode) else _Kind.LINKED_FILE
    except OSError:
        return _Kind.BROKEN


def _follow(link: Path, into: Findings) -> None:
    """Note why a link that may be one to a folder cannot be followed."""
    try:
        link.stat()
    except OSError as error:
        into.refuse(link, error)


def named_once(paths: Mapping[Path, str], root: Path) -> list[Path]:
    """Return paths without those that are another name of a file among them.

    Args:
        paths: Below `root`, with their real paths where they are known; links that cannot be
            followed are kept.
        root: Links on the way to it do not count.
    """
    names: dict[str, list[Path]] = {}
    for path, real in paths.items():
        names.setdefault(real or _identity(path), []).append(path)
    return sorted(
        min(same, key=lambda path: (_num_links(path, root), path)) if len(same) > 1 else same[0]
        for same in names.values()
    )


def _identity(path: Path) -> str:
    try:
        return os.path.realpath(path, strict=True)
    except OSError:
        return str(path)


def _num_links(path: Path, root: Path) -> int:
    below = path.relative_to(root)
    on_the_way = (below, *below.parents)
    return sum((root / part).is_symlink() for part in on_the_way if part.parts)


def why_not(path: Path, error: OSError, *, what: str) -> str:
    """Return why something of an input cannot be taken, as the end of a sentence.

    Args:
        path: What it is.
        error: What the system said.
        what: What was tried: "searched" or "read".

    Raises:
        UserError: This process is at one of its own limits; the input is not at fault.
    """
    if error.errno in _OUR_LIMITS:
        raise UserError(
            f"The input {shown(path)} cannot be {what}: {error.strerror}. Raise the limit of this "
            "process and run the same command again."
        ) from error
    if error.errno in _NOT_THERE:
        try:
            return f"is a link to {shown(path.readlink())}, where there is nothing"
        except OSError:  # it is no link
            return GONE
    if error.errno == errno.ELOOP:
        return "is a link that leads to itself"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"may not be {what}: check its permissions"
    return f"cannot be {what} ({error.strerror or error})"
