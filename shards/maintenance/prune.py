"""Deletes old generations and unfinished work from a dataset's folder.

    g0001-3f9c12ab/, removals/, vocabulary-….arrow    files that a manifest names or has named
    .work/                                            the work of an unfinished build
    .tmp-…-NAME                                       a file that was not finished

At the top of the folder these names, and everything below them, belong to corpusmill. All other
files there stay, and so do links. A file that the previous manifest named may still be in use, for
example by a training run: it stays for a grace period after the manifest was replaced
(manifest.py).
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shards import removals
from shards.errors import UserError
from shards.manifest import WORK, Manifest
from shards.storage.files import TEMPORARY, delete, list_files
from shards.storage.remote import AnyPath

GRACE_DAYS = 30
"""The number of days for which replaced files stay, because training runs are long."""

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
    replaced: float
    """The time at which a manifest that named the file was replaced; -inf if no manifest ever named
    it or if the time is unknown (URLs)."""


def leftovers(directory: AnyPath, manifest: Manifest) -> Iterator[Leftover]:
    """Yield the leftovers that may be deleted, sorted, as whole folders where possible."""
    kept = {removals.FOLDER}.union(*(ancestors(path) for path, _ in manifest.files()))
    sizes: Counter[str] = Counter()
    for file, size in _own_files(directory).items():
        if whole := next((path for path in ancestors(file) if path not in kept), None):
            sizes[whole] += size
    for name, size in sizes.items():
        path, folder = directory / name, name.rpartition("/")[0]
        named = folder in ("", removals.FOLDER) and not name.startswith(".")
        replaced = path.stat().st_mtime if named and isinstance(path, Path) else -math.inf
        yield Leftover(path=path, bytes=size, replaced=replaced)


def _own_files(directory: AnyPath) -> dict[str, int]:
    """Return the sizes of corpusmill's files in a dataset's folder, by path."""
    found = list_files(directory, unfinished=True)
    tops = {name.partition("/")[0] for name in found}
    own = {top for top in tops if _OWN.fullmatch(top) and not (directory / top).is_symlink()}
    return {name: size for name, size in found.items() if name.partition("/")[0] in own}


def ancestors(path: str) -> list[str]:
    """Return the folders above a file, from the top down, and then the file."""
    return [*itertools.accumulate(path.split("/"), "{}/{}".format)]


def remove_work(work: AnyPath, folder: str = "") -> None:
    """Delete the files that a build left in `.work`, or in one of its folders."""
    if not work.is_symlink():
        with suppress(UserError):  # prune deletes the rest, if any
            delete(work / folder if folder else work)


def remove_unfinished(directory: AnyPath) -> None:
    """Delete the unfinished files of killed processes in a folder; there are none behind a URL."""
    for name in _own_files(directory) if isinstance(directory, Path) else ():
        if name.rpartition("/")[2].startswith(TEMPORARY):
            (directory / name).unlink(missing_ok=True)
