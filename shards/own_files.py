"""Which files in a dataset's folder corpusmill made, by names that nobody else gives.

    g0001-3f9c12ab/SOURCE/…         shards, and the tables beside them
    removals/…, vocabulary-….arrow
    .work/PHASE/…                   what an unfinished build has made so far
    .tmp-…-NAME                     a file of these, or one at the top, that was not finished

Clean-up deletes these and nothing else: files of others, and links, which corpusmill never makes,
stay wherever they lie. Finished files at the top (manifest.json, report.json …) are no leftovers.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from shards.manifest import WORK
from shards.storage.files import TEMPORARY, files
from shards.storage.remote import AnyPath, RemotePath, relative

_HASH = "[0-9a-f]{24}"
_GENERATION = r"g\d{4,}-[0-9a-f]+"
_FOLDER = re.compile(
    "(attempts|components|dedup|drops|group|known|map|mates|merge|plan|progress|ranges|rejects"
    "|slots|watch|compact(/[0-9a-f]{16}(/[^/]+)?)?)?"
)
"""Folders of .work, by their path in it; .work itself is empty."""

_FILE = re.compile(
    rf"{_GENERATION}/[^/]+/(?:validation-)?\d+\.(?:bin|idx|arrow)"
    rf"|{_GENERATION}/(?:audit|rejects|dropped)/[^/.][^/]*\.parquet"
    rf"|{_GENERATION}/signatures/[a-z][a-z0-9-]*\.arrow"
    r"|removals/\d+(?:-[0-9a-f]{8})?\.arrow"
    r"|vocabulary-[0-9a-f]{8}\.arrow"
    rf"|{re.escape(WORK)}/(?:"
    rf"[a-z]+/{_HASH}[-.][a-z0-9.-]+"
    r"|progress/[0-9a-f]{32}\.(?:json|tmp)"
    r"|watch/(?:driver|trouble)\.json"
    r"|compact/[0-9a-f]{16}/[^/]+/[^/.][^/]*\.json)"
)
_TOP = re.compile(r"(?:manifest|inputs|report|ledger)\.json|report\.html|\.lineages|\.placed")
_UNFINISHED = re.compile(rf"((?:.*/)?){re.escape(TEMPORARY)}[0-9a-f]{{32}}-([^/]+)", re.DOTALL)
_OWN_FOLDER = re.compile(rf"{_GENERATION}|removals|{re.escape(WORK)}")
"""At the top."""
_BESIDE_WORK = re.compile(rf"{_GENERATION}(/[^/]+)?|removals")
"""Folders but .work and what is in it: in a generation any name may be that of a source."""


def is_ours(path: str) -> bool:
    """Return whether corpusmill made the file at a path in a dataset's folder.

    Those at the top are not meant, finished ones: they are the dataset's own, or about it.
    """
    unfinished = _UNFINISHED.fullmatch(path)
    if unfinished is None:
        return _FILE.fullmatch(path) is not None
    final = unfinished[1] + unfinished[2]
    return (_FILE.fullmatch(final) or _TOP.fullmatch(final)) is not None


def is_own_name(name: str) -> bool:
    """Return whether a name at the top is that of a leftover, or of a folder that may hold some."""
    return _OWN_FOLDER.fullmatch(name) is not None or is_ours(name)


def all_ours(directory: Path, path: Path) -> bool:
    """Return whether corpusmill made a file, or a folder with everything in it, of a dataset."""
    name = path.relative_to(directory).as_posix()
    if path.is_symlink() or not path.is_dir():
        return _is_own(path, name)
    return _is_own_folder(name) and all(all_ours(directory, child) for child in path.iterdir())


def _is_own_folder(name: str) -> bool:
    top, _, below = name.partition("/")
    found = _FOLDER.fullmatch(below) if top == WORK else _BESIDE_WORK.fullmatch(name)
    return found is not None


def _is_own(path: Path, name: str) -> bool:
    return is_ours(name) and not path.is_symlink()


def remove_work(work: AnyPath, folder: str = "") -> list[str]:
    """Delete what a build has left in `.work`, or in one folder of it; return what is not its own.

    Args:
        work: The folder .work of a dataset.
        folder: Its folder to look at; all of it by default.

    Returns:
        Relative paths of files and links that stay.
    """
    start = work / folder if folder else work
    if isinstance(work, RemotePath):
        names = [relative(start / name, work) for name in files(start)]
        own = [name for name in names if is_ours(f"{WORK}/{name}")]
        work.remove(own)
        return sorted(set(names) - set(own))
    others: list[str] = []
    for parent, names in _bottom_up(start):
        below = "" if parent == work else relative(parent, work)
        paths = [f"{below}/{name}" if below else name for name in names]
        own = [path for path in paths if _is_own(work / path, f"{WORK}/{path}")]
        others += sorted(set(paths) - set(own))
        for path in own:
            with suppress(OSError):  # gone meanwhile, or it has to stay
                (work / path).unlink()
        if own or _FOLDER.fullmatch(below):
            with suppress(OSError):  # something is in it
                parent.rmdir()
    return sorted(others)


def _bottom_up(folder: AnyPath) -> Iterator[tuple[Path, list[str]]]:
    """Yield every folder, after those in it, with the names of its files and links."""
    if not isinstance(folder, Path) or folder.is_symlink():
        return
    for name, subfolders, names in os.walk(folder, topdown=False):
        parent = Path(name)
        yield parent, names + [each for each in subfolders if (parent / each).is_symlink()]


def remove_unfinished(directory: Path) -> None:
    """Delete the unfinished files of killed processes in a dataset's folder."""
    for name, subfolders, names in os.walk(directory):
        parent = Path(name)
        if parent == directory:
            subfolders[:] = filter(_OWN_FOLDER.fullmatch, subfolders)
        for each in names:
            path = parent / each
            if each.startswith(TEMPORARY) and is_ours(path.relative_to(directory).as_posix()):
                path.unlink(missing_ok=True)
