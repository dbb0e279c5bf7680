"""The files of an input on local disks: a folder, a file or a glob."""

import glob
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath, PurePosixPath

from pipelines.inputs.found_file import FoundFile, any_of, some_of
from shards.errors import UserError


def find_local(path: str, patterns: Sequence[str]) -> list[FoundFile]:
    """Return the files that a path names, in no special order.

    Args:
        path: A folder, a file or a glob; a path that exists is taken literally.
        patterns: Which files of a folder count; subfolders are searched too.

    Raises:
        UserError: The path is missing, a file is unreadable, or nothing matches.
    """
    named = Path(path)
    root, paths = _found(path, patterns)
    if not paths and named.is_dir():
        raise UserError(f"No file in {path} matches {any_of(patterns)}; {_inventory(named)}.")
    if not paths:
        raise UserError(f"No file matches {path}; {_inventory(root)}.")
    return [_describe(file, root=root) for file in sorted(paths)]


def look_local(path: str, patterns: Sequence[str]) -> tuple[list[FoundFile], dict[FoundFile, str]]:
    """Return what `find_local` does, while files come and go: there may be none.

    Returns:
        The files; and those whose name is not UTF-8 or that may not be read, with the reason.

    Raises:
        UserError: There is no such folder.
    """
    root, paths = _found(path, patterns)
    if not root.is_dir():
        raise UserError(f"The input {path} is gone: there is no folder {root}.")
    files = []
    refused = {}
    for file in sorted(paths):
        with suppress(FileNotFoundError):  # renamed or deleted meanwhile
            found = _status(file, root=root)
            why = _defect(file, found)
            if not why:
                files.append(found)
            elif file.exists():
                refused[found] = why
    return files, refused


def _found(path: str, patterns: Sequence[str]) -> tuple[Path, set[Path]]:
    """Return the files that a path names, and the folder that their names are relative to."""
    named = Path(path)
    if named.is_dir():
        return named, _matching(named, patterns)
    if named.exists():
        return named.parent, {named}
    if glob.has_magic(path):
        root = _fixed_folder(named)
        return root, _files(root.glob(str(named.relative_to(root))))
    raise UserError(f"The input {path} does not exist; {_inventory(named.parent)}.")


def _matching(folder: Path, patterns: Sequence[str]) -> set[Path]:
    """Return the files below a folder that match; links to folders are followed, once each."""
    matches, seen = set(), set()
    for name, subfolders, files in os.walk(folder, followlinks=True):
        parent = Path(name)
        real = parent.resolve()
        if real in seen:
            subfolders.clear()
            continue
        seen.add(real)
        matches |= {parent / file for file in files if any(map((parent / file).match, patterns))}
    return _files(matches)


def _files(paths: Iterable[Path]) -> set[Path]:
    return {path for path in paths if path.is_file()}


def _fixed_folder(path: Path) -> Path:
    """Return the part of a glob before its first component with a wildcard."""
    parts = path.parts
    first = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:first])


def _inventory(folder: Path) -> str:
    if not folder.is_dir():
        return f"there is no folder {folder}"
    names = sorted(entry.name for entry in folder.iterdir())
    return f"{folder} holds {some_of(names)}" if names else f"{folder} is empty"


def _describe(path: Path, *, root: Path) -> FoundFile:
    found = _status(path, root=root)
    why = _defect(path, found)
    if why:
        raise UserError(f"The input file {found.path} {why}.")
    return found


def _status(path: Path, *, root: Path) -> FoundFile:
    """Return the file at a path; what is not UTF-8 in its name is spelt out."""
    status = path.stat()
    return FoundFile(
        path=_spelt(path.absolute()),
        relative=_spelt(PurePosixPath(path.relative_to(root))),
        bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
    )


def _defect(path: Path, found: FoundFile) -> str:
    """Return why a file cannot be an input; empty if it can."""
    if found.path != str(path.absolute()):
        return "has a name that is not UTF-8; rename it"
    if not path.is_file():
        return "is neither a file nor a folder"
    if not os.access(path, os.R_OK):
        return "may not be read; check its permissions"
    return ""


def _spelt(path: PurePath) -> str:
    return os.fsencode(path).decode(errors="backslashreplace")
