"""Finds the input files on local disks that a folder, a file or a glob names."""

import glob
import itertools
import os
import stat
from collections.abc import Sequence
from pathlib import Path, PurePath

from pipelines.read.input_file import InputFile, any_of, shown, some_of, warn_of_links
from pipelines.read.listing import Listing
from pipelines.read.names import advice_on, advice_on_names, matcher, split_at_wildcard
from pipelines.read.tree import (
    Findings,
    expand_glob,
    one_path_per_file,
    search_folder,
    why_unreadable,
)
from shards.commands.spelling import nearest
from shards.commands.table import called
from shards.errors import UserError

_STAND_INS = {
    b"version https://git-lfs.github.com/spec/": "git lfs pull",
    b"/annex/objects/": "git annex get",
}
"""The first bytes of the placeholders that a repository stores for large files."""
_HEAD_BYTES = max(map(len, _STAND_INS))
_MAX_POINTER_BYTES = 1024

_MAX_COMPARED = 10_000
"""The maximum number of names in a folder that a mistyped name is compared with."""


def find_local(path: str, patterns: Sequence[str], *, growing: bool = False) -> Listing:
    """List the files that a path names, each once: readable files by path, and unreadable files.

    Args:
        path: A folder, a file or a glob; a path that exists is taken literally.
        patterns: The patterns of the files to read; subfolders are searched too.
        growing: Whether files may be added and removed later, so that there may be none yet.

    Raises:
        UserError: The path is missing or nothing matches; if `growing` is set, the path cannot be
            searched.
    """
    root, findings = _search(path, patterns)
    if growing and root in findings.refused:
        raise UserError(f"The input {shown(root)} {findings.refused[root]}.")
    if not (findings.matches or findings.refused or (growing and _is_folder(root))):
        no_file = (
            f"No file in {shown(path)} matches {any_of(patterns)}"
            if _is_folder(Path(path))
            else f"No file matches {shown(path)}"
        )
        raise UserError(
            f"{no_file}; {_inventory(root)}.{_advice(root, by_name=_is_folder(Path(path)))}"
        )
    if not growing:
        warn_of_links(path, {str(link) for link in findings.broken_links})
    described = [_describe(file, root) for file in one_path_per_file(findings.matches, root)]
    refused = {file: why for file, why in described if why}
    for folder, why in sorted(findings.refused.items()):
        name, relative = _spelt(folder.absolute()), _spelt(folder.relative_to(root))
        refused[InputFile(path=f"{name}/", relative=f"{relative}/", bytes=0)] = why
    return Listing(
        root=_spelt(root.absolute()),
        files=[file for file, why in described if not why],
        refused=refused,
        unmatched=sorted(_spelt(file.absolute()) for file in findings.unmatched),
        hidden=sorted(_with_slash(place.absolute()) for place in findings.hidden),
        is_file=findings.matches == {Path(path)},
    )


def _with_slash(path: Path) -> str:
    """Return the path of a file or folder, with a trailing slash for a folder."""
    return f"{_spelt(path)}{'/' * _is_folder(path)}"


def _search(path: str, patterns: Sequence[str]) -> tuple[Path, Findings]:
    """Search a path; return the folder that relative names start from, and the findings."""
    named = Path(path)
    if _is_folder(named):
        matches = matcher(patterns)
        return named, search_folder(named, lambda file: matches(str(file)))
    if os.path.lexists(named):
        return named.parent, Findings(matches={named})
    if glob.has_magic(path):
        fixed, parts = split_at_wildcard(named.parts)
        root = Path(*fixed)
        return root, expand_glob(root, parts) if _is_folder(root) else Findings()
    raise UserError(f"The input {shown(path)} {absence(named)}.")


def _describe(path: Path, root: Path) -> tuple[InputFile, str]:
    """Return the file at a path, and the reason why it cannot be an input; "" if it can."""
    size = mtime_ns = 0
    try:
        status = path.stat()
        size, mtime_ns = status.st_size, status.st_mtime_ns
        why = _refusal(path, size) if stat.S_ISREG(status.st_mode) else _NEITHER
    except OSError as error:
        why = why_unreadable(path, error, what="read")
    name, relative = _spelt(path.absolute()), _spelt(path.relative_to(root))
    if name != str(path.absolute()):
        why = "has a name that is not UTF-8: rename it"
    return InputFile(path=name, relative=relative, bytes=size, mtime_ns=mtime_ns), why


_NEITHER = "is neither a file nor a folder"


def _refusal(path: Path, size: int) -> str:
    """Return why a file cannot belong to the corpus; "" if it may.

    Raises:
        OSError: The file cannot be read, which only opening it shows.
    """
    with path.open("rb", buffering=0) as file:
        head = file.read(_HEAD_BYTES) if size <= _MAX_POINTER_BYTES else b""
    for start, remedy in _STAND_INS.items():
        if head.startswith(start):
            return f"is a placeholder for a file that was not fetched: run {remedy}"
    return ""


def _advice(root: Path, *, by_name: bool) -> str:
    """Return advice on a folder's skipped files; if `by_name` is set, on their names too."""
    paths = [str(root / name) for name in _some_names(root)]
    look = f" To inspect them: {called('look')} {shown(root)}." if paths else ""
    return f"{advice_on(paths)}{advice_on_names(paths) if by_name else ''}" or look


def _is_folder(path: Path) -> bool:
    # Path.is_dir raises if permission is denied.
    return os.path.isdir(path)  # noqa: PTH112 - see above


def absence(path: Path) -> str:
    """Return why nothing was found at a path, as the end of a sentence; "" if something exists."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        near = _nearest(path)
        meant = f" (did you mean {shown(near)}?)" if near else ""
        return f"does not exist{meant}; {_inventory(path.parent)}"
    except OSError as error:
        return f"cannot be opened ({error.strerror}); check the path and its permissions"
    except ValueError as error:  # The path contains a zero byte.
        return f"is not a path ({error})"
    return ""


def _nearest(path: Path) -> Path | None:
    """Return a mistyped path with its first wrong part corrected; None if no name is similar."""
    for folder, missing in itertools.pairwise((*reversed(path.parents), path)):
        if not missing.exists():
            close = nearest(missing.name, _some_names(folder), most=1)
            if not close:
                return None
            meant = folder / close[0] / path.relative_to(missing)
            return meant if meant.exists() else folder / close[0]
    return None


def _some_names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in itertools.islice(folder.iterdir(), _MAX_COMPARED)]
    except OSError:
        return []


def _inventory(folder: Path) -> str:
    try:
        names = sorted(shown(entry.name) for entry in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no folder {shown(folder)}"
    except OSError as error:
        return f"the folder {shown(folder)} cannot be listed ({error.strerror})"
    return f"{shown(folder)} contains {some_of(names)}" if names else f"{shown(folder)} is empty"


def _spelt(path: PurePath) -> str:
    """Return a path with the bytes that are not UTF-8 written as escapes."""
    return os.fsencode(path).decode(errors="backslashreplace")
