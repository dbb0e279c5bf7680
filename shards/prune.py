"""Finds what a dataset's folder holds besides the dataset: old generations and unfinished work."""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shards.errors import UserError
from shards.manifest import WORK, Manifest
from shards.storage.disk import explain
from shards.storage.files import TEMPORARY, files
from shards.storage.remote import AnyPath, RemotePath

_OURS = re.compile(
    rf"g\d{{4,}}-[0-9a-f]+|removals|vocabulary-[0-9a-f]{{8}}\.arrow|{re.escape(WORK)}"
    rf"|{re.escape(TEMPORARY)}.+"
)
"""Names in a dataset's folder that only corpusmill gives; nothing else is touched."""


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A file or a whole folder that no manifest names."""

    path: AnyPath
    bytes: int


def leftovers(directory: AnyPath, manifest: Manifest) -> Iterator[Leftover]:
    """Yield, sorted, what may be deleted: folders as a whole where nothing in them is named.

    Files that corpusmill did not make, reports and the lock stay. A URL has no folders.
    """
    if isinstance(directory, RemotePath):
        entries = {path for path, _ in manifest.files()}
        for name, size in files(directory).items():
            if name not in entries and _OURS.fullmatch(name.partition("/")[0]):
                yield Leftover(path=directory / name, bytes=size)
        return
    named = {directory / path for path, _ in manifest.files()}
    needed = named | {folder for path in named for folder in path.parents}
    for path in sorted(directory.iterdir()):
        if _OURS.fullmatch(path.name):
            yield from _unneeded(path, needed)


def _unneeded(path: Path, needed: set[Path]) -> Iterator[Leftover]:
    if path not in needed:
        yield Leftover(path=path, bytes=_size(path))
    elif path.is_dir() and not path.is_symlink():
        for child in sorted(path.iterdir()):
            yield from _unneeded(child, needed)


def _size(path: Path) -> int:
    if path.is_symlink() or path.is_file():
        return path.lstat().st_size
    return sum(
        os.lstat(Path(folder, name)).st_size for folder, _, names in os.walk(path) for name in names
    )


def delete(leftover: Leftover) -> None:
    """Delete a file, a link or a folder.

    Raises:
        UserError: it cannot be deleted; says why.
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
