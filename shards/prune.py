"""Deletes what a dataset's folder holds besides the dataset: old generations, unfinished work.

    g0001-3f9c12ab/, removals/, vocabulary-….arrow    what a manifest names, or has named
    .work/                                            what an unfinished build has made so far
    .tmp-…-NAME                                       a file that was not finished

At the top these names are corpusmill's, with everything below them. All other files there stay, and
so do links. What a manifest named until lately may still be read, by a training run for one: it
stays for a grace period after another manifest replaced that one, whose time says when
(manifest.py).
"""

import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shards import removals
from shards.manifest import WORK, Manifest
from shards.storage.disk import disk_errors_explained
from shards.storage.files import TEMPORARY, files
from shards.storage.remote import AnyPath, RemotePath

GRACE_DAYS = 30
"""A training run is long."""

_OWN = re.compile(
    rf"g\d{{4,}}-[0-9a-f]+|{removals.FOLDER}|{re.escape(WORK)}|vocabulary-[0-9a-f]{{8}}\.arrow"
    rf"|{re.escape(TEMPORARY)}[0-9a-f]{{32}}-.*",
    re.DOTALL,
)


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

    def delete(self) -> None:
        """Delete it.

        Raises:
            UserError: It cannot be deleted; the message says why.
        """
        if isinstance(self.path, RemotePath):
            self.path.unlink(missing_ok=True)
            return
        with disk_errors_explained(self.path):
            if self.path.is_dir() and not self.path.is_symlink():
                shutil.rmtree(self.path)
            else:
                self.path.unlink()


def leftovers(directory: AnyPath, manifest: Manifest) -> Iterator[Leftover]:
    """Yield, sorted, what may be deleted: whole folders if nothing in them is named.

    At a URL there are only files.
    """
    named = {path for path, _ in manifest.files()}
    if isinstance(directory, RemotePath):
        for name, size in files(directory).items():
            if name not in named and _OWN.fullmatch(name.partition("/")[0]):
                yield Leftover(path=directory / name, bytes=size)
        return
    kept_files = {directory / path for path in named}
    kept = kept_files | {folder for path in kept_files for folder in path.parents}
    for path in _own_paths(directory):
        if path.name == removals.FOLDER:
            for child in sorted(path.iterdir()):
                yield from _leftovers_below(child, kept, name=f"{path.name}/{child.name}")
        else:
            yield from _leftovers_below(path, kept, name=path.name)


def _leftovers_below(path: Path, kept: set[Path], *, name: str) -> Iterator[Leftover]:
    """Yield what is not kept; `name` is that of the path in the dataset, "" below what has one."""
    if path not in kept:
        below = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
        sizes = (each.lstat().st_size for each in below if each.is_symlink() or each.is_file())
        yield Leftover(path=path, bytes=sum(sizes), name=name)
    elif path.is_dir():
        for child in sorted(path.iterdir()):
            yield from _leftovers_below(child, kept, name="")


def _own_paths(directory: Path) -> list[Path]:
    """Return what is corpusmill's at the top of a dataset's folder, sorted."""
    paths = directory.iterdir() if directory.exists() else ()
    return sorted(path for path in paths if _OWN.fullmatch(path.name) and not path.is_symlink())


def remove_work(work: AnyPath, folder: str = "") -> None:
    """Delete what a build has left in `.work`, or in one folder of it."""
    path = work / folder if folder else work
    if isinstance(path, RemotePath):
        path.remove([*files(path)])
    elif isinstance(work, Path) and not work.is_symlink():
        shutil.rmtree(path, ignore_errors=True)


def remove_unfinished(directory: Path) -> None:
    """Delete the unfinished files of killed processes in a dataset's folder."""
    for path in _own_paths(directory):
        if path.is_dir():
            for unfinished in path.rglob(f"{TEMPORARY}*"):
                unfinished.unlink(missing_ok=True)
        elif path.name.startswith(TEMPORARY):
            path.unlink(missing_ok=True)
