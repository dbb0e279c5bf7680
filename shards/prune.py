"""Finds and deletes what a folder holds besides its dataset: old generations, unfinished work."""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shards import removals
from shards.errors import UserError
from shards.manifest import WORK, Manifest
from shards.storage.disk import explain
from shards.storage.files import TEMPORARY, files
from shards.storage.remote import AnyPath, RemotePath

_OURS = re.compile(
    rf"g\d{{4,}}-[0-9a-f]+|removals|vocabulary-[0-9a-f]{{8}}\.arrow|{re.escape(WORK)}"
    rf"|{re.escape(TEMPORARY)}.+"
)
"""Names in a dataset's folder that only corpusmill uses; nothing else is touched."""


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A file or whole folder that the manifest does not name."""

    path: AnyPath
    bytes: int
    name: str = ""
    """By which a manifest may have named it (Manifest.names); "" if none ever did."""


def leftovers(directory: AnyPath, manifest: Manifest) -> Iterator[Leftover]:
    """Yield, sorted, what may be deleted: whole folders if nothing in them is named.

    Files that corpusmill did not make, reports and the lock stay. At a URL there are only files.
    """
    named = {path for path, _ in manifest.files()}
    if isinstance(directory, RemotePath):
        for name, size in files(directory).items():
            if name not in named and _OURS.fullmatch(name.partition("/")[0]):
                yield Leftover(path=directory / name, bytes=size)
        return
    kept_files = {directory / path for path in named}
    kept = kept_files | {folder for path in kept_files for folder in path.parents}
    for path in sorted(directory.iterdir()):
        if _OURS.fullmatch(path.name):
            yield from _leftovers_below(path, kept, name=path.name)


def _leftovers_below(path: Path, kept: set[Path], *, name: str = "") -> Iterator[Leftover]:
    """Yield what is not kept; `name` is that of the path in the dataset, "" below what has one."""
    each = name == removals.FOLDER and path.is_dir() and not path.is_symlink()
    if path not in kept and not each:
        yield Leftover(path=path, bytes=_size(path), name=name)
    elif path.is_dir() and not path.is_symlink():
        for child in sorted(path.iterdir()):
            yield from _leftovers_below(child, kept, name=f"{name}/{child.name}" if each else "")


def _size(path: Path) -> int:
    if path.is_symlink() or path.is_file():
        return path.lstat().st_size
    return sum(
        os.lstat(Path(folder, name)).st_size for folder, _, names in os.walk(path) for name in names
    )


def delete(leftover: Leftover) -> None:
    """Delete a file, a link or a folder.

    Raises:
        UserError: it cannot be deleted; the message says why.
    """
    path = leftover.path
    if isinstance(path, RemotePath):
        path.unlink(missing_ok=True)
        return
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        raise UserError(f"cannot delete: {explain(error, path)}") from error
