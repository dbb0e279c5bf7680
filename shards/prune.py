"""Finds and deletes what a folder holds besides its dataset: old generations, unfinished work.

What a manifest named until lately may still be read, by a training run for one. So it stays for a
grace period after another manifest replaced that one: its time says when (manifest.py).
"""

import math
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shards import removals
from shards.errors import UserError
from shards.manifest import Manifest
from shards.own_files import all_ours, is_ours, is_own_name
from shards.storage.disk import explain
from shards.storage.files import files
from shards.storage.remote import AnyPath, RemotePath

GRACE_DAYS = 30
"""A training run is long."""


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A file or whole folder that the manifest does not name."""

    path: AnyPath
    bytes: int
    name: str = ""
    """By which a manifest may have named it (Manifest.names); "" if none ever did."""

    def age(self, now: float) -> float:
        """Return the seconds since a manifest may have named it; at a URL nobody knows: no end."""
        if isinstance(self.path, RemotePath) or not self.name or self.name.startswith("."):
            return math.inf
        return now - self.path.stat().st_mtime


def leftovers(directory: AnyPath, manifest: Manifest) -> Iterator[Leftover]:
    """Yield, sorted, what may be deleted: whole folders if nothing in them is named.

    Files that corpusmill did not make, reports and the lock stay. At a URL there are only files.
    """
    named = {path for path, _ in manifest.files()}
    if isinstance(directory, RemotePath):
        for name, size in files(directory).items():
            if name not in named and is_ours(name):
                yield Leftover(path=directory / name, bytes=size)
        return
    kept_files = {directory / path for path in named}
    kept = kept_files | {folder for path in kept_files for folder in path.parents}
    for path in sorted(directory.iterdir()):
        if is_own_name(path.name):
            yield from _leftovers_below(directory, path, kept, name=path.name)


def _leftovers_below(
    directory: Path, path: Path, kept: set[Path], *, name: str = ""
) -> Iterator[Leftover]:
    """Yield what is not kept; `name` is that of the path in the dataset, "" below what has one."""
    is_folder = path.is_dir() and not path.is_symlink()
    each = name == removals.FOLDER and is_folder
    if path not in kept and not each and all_ours(directory, path):
        yield Leftover(path=path, bytes=_size(path), name=name)
    elif is_folder:
        below = "" if path in kept else name
        for child in sorted(path.iterdir()):
            own = f"{name}/{child.name}" if each else below
            yield from _leftovers_below(directory, child, kept, name=own)


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
