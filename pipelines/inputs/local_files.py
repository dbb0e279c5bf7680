"""The files of an input on local disks: a folder, a file or a glob."""

import glob
import itertools
import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath, PurePosixPath

from pipelines.inputs.endings import FROM_TABLES
from pipelines.inputs.found_file import FoundFile, any_of, shown, some_of
from pipelines.inputs.tree import GONE, Findings, expand, named_once, search, why_not
from pipelines.inputs.wildcards import at_wildcard
from shards.errors import UserError
from shards.spelling import nearest

_LOG = logging.getLogger("corpusmill")

_STAND_INS = {
    b"version https://git-lfs.github.com/spec/": "git lfs pull",
    b"/annex/objects/": "git annex get",
}
"""How the files begin that a repository has in place of large ones."""
_HEAD_BYTES = max(map(len, _STAND_INS))
_MOST_OF_A_STAND_IN = 1024

_MOST_COMPARED = 10_000
"""Names in a folder that a mistyped one is compared with."""

_JUST_NOW = "has only just appeared; run the command again"

_IN_TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_IN_OTHER_FORMATS = (
    *(".xml", ".html", ".htm", ".pdf", ".docx", ".epub", ".xlsx", ".arrow", ".warc.gz", ".warc"),
    *(".tar", ".tar.gz", ".tgz", ".zip", ".rar", ".7z", ".xz", ".md"),
)


def find_local(path: str, patterns: Sequence[str]) -> tuple[list[FoundFile], dict[FoundFile, str]]:
    """Return the files that a path names, by their paths, and what cannot be read of it.

    Args:
        path: A folder, a file or a glob; a path that exists is taken literally.
        patterns: Which files of a folder count; subfolders are searched too.

    Returns:
        The files, each once; and what matches but cannot be read, with the reason: files, and
        folders, whose paths end with a slash.

    Raises:
        UserError: The path is missing, or nothing matches.
    """
    root, findings = _search(path, patterns)
    once = named_once(findings.matches, root)
    if not once and not findings.refused:
        no_file = (
            f"No file in {shown(path)} matches {any_of(patterns)}"
            if _is_folder(Path(path))
            else f"No file matches {shown(path)}"
        )
        raise UserError(f"{no_file}; {_inventory(root)}.{_advice(root)}")
    if findings.astray:
        _LOG.warning(
            "%s: links that lead nowhere are passed over, as their names do not match: %s",
            shown(path),
            some_of([shown(link) for link in sorted(set(findings.astray))]),
        )
    if len(once) < len(findings.matches):
        _LOG.info(
            "%s: %d links lead to files that have another name here: each file is taken once",
            shown(path),
            len(findings.matches) - len(once),
        )
    return _described(once, findings.refused, root=root, known=Known())


class Known:
    """Files as the last look found them: what has not changed since is not opened again."""

    def __init__(self) -> None:
        """Know none."""
        self._files: dict[str, tuple[int, FoundFile]] = {}

    def describe(self, paths: Sequence[Path], *, root: Path) -> Iterator[tuple[FoundFile, str]]:
        """Yield what lies at each path, and why it cannot be an input; empty if it can."""
        before, self._files = self._files, {}
        for path in paths:
            try:
                status = path.stat()
            except OSError as error:
                unknown = FoundFile(
                    path=_spelt(path.absolute()), relative=_below(path, root), bytes=0
                )
                yield unknown, why_not(path, error, what="read")
                continue
            name, version, why = str(path), _version(status), ""
            same, file = before.get(name, (0, None))
            if file is None or same != version:
                file, why = _describe(path, status, root=root)
            if not why:
                self._files[file.path if file.path == name else name] = version, file
            yield file, why


def look_local(
    path: str, patterns: Sequence[str], known: Known | None = None
) -> tuple[list[FoundFile], dict[FoundFile, str]]:
    """Return what `find_local` does, while files come and go: there may be none.

    Args:
        path: As for `find_local`.
        patterns: As for `find_local`.
        known: From the last look at this path; it learns from this one.

    Raises:
        UserError: There is no such folder, or it cannot be listed.
    """
    root, findings = _search(path, patterns)
    if not _is_folder(root):
        raise UserError(f"The input {shown(path)} is not there: {_inventory(root)}.")
    if root in findings.refused:
        raise UserError(f"The input {shown(root)} {findings.refused[root]}.")
    once = named_once(findings.matches, root)
    files, refused = _described(once, findings.refused, root=root, known=known or Known())
    return files, {file: why for file, why in refused.items() if why != GONE}


def _search(path: str, patterns: Sequence[str]) -> tuple[Path, Findings]:
    """Return what a path names, and the folder that names are relative to."""
    named = Path(path)
    if _is_folder(named):
        return named, search(named, _matcher(patterns))
    if os.path.lexists(named):
        return named.parent, Findings(matches={named: ""})
    if glob.has_magic(path):
        fixed, parts = at_wildcard(named.parts)
        root = Path(*fixed)
        return root, expand(root, parts) if _is_folder(root) else Findings()
    raise UserError(f"The input {shown(path)} {absence(named) or _JUST_NOW}.")


def _advice(root: Path) -> str:
    """Return what to do about the files of a folder that no command reads."""
    names = [name.lower() for name in _some_names(root)]
    if any(name.endswith(_IN_TABLES) for name in names):
        return f" {FROM_TABLES}"
    if any(name.endswith(_IN_OTHER_FORMATS) for name in names):
        return " Unpack archives first; a corpus of your own reads other formats (docs/own.md)."
    return f" To see what they are: python -m pipelines.look {shown(root)}." if names else ""


def _matcher(patterns: Sequence[str]) -> Callable[[Path], bool]:
    if any("/" in pattern for pattern in patterns):
        return lambda file: any(map(file.match, patterns))
    # The same, at a tenth of the cost.
    return lambda file: any(fnmatchcase(file.name, pattern) for pattern in patterns)


def _is_folder(path: Path) -> bool:
    # Where there is no access, Path.is_dir raises.
    return os.path.isdir(path)  # noqa: PTH112 - see above


def absence(path: Path) -> str:
    """Return why nothing is seen at a path, as the end of a sentence; empty if something is."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        near = _nearest(path)
        meant = f" (did you mean {shown(near)}?)" if near else ""
        return f"does not exist{meant}; {_inventory(path.parent)}"
    except OSError as error:
        return f"cannot be reached ({error.strerror}); check the path and the rights of its folders"
    except ValueError as error:  # a zero byte
        return f"is not a path ({error})"
    return ""


def _nearest(path: Path) -> Path | None:
    """Return what a path that does not exist may have meant, by the first name that is wrong."""
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
        return [entry.name for entry in itertools.islice(folder.iterdir(), _MOST_COMPARED)]
    except OSError:
        return []


def _inventory(folder: Path) -> str:
    try:
        names = sorted(shown(entry.name) for entry in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no folder {shown(folder)}"
    except OSError as error:
        return f"the folder {shown(folder)} cannot be listed ({error.strerror})"
    return f"{shown(folder)} holds {some_of(names)}" if names else f"{shown(folder)} is empty"


def _described(
    matches: Sequence[Path], folders: Mapping[Path, str], *, root: Path, known: Known
) -> tuple[list[FoundFile], dict[FoundFile, str]]:
    """Return the files that can be read, and what cannot be, as `find_local` does.

    Args:
        matches: Files, and other things that matched.
        folders: Those that cannot be searched, and why.
        root: What names are relative to.
        known: Files as they were before.
    """
    files = []
    refused = {}
    for file, why in known.describe(matches, root=root):
        if why:
            refused[file] = why
        else:
            files.append(file)
    for path in sorted(folders):
        name, relative = _spelt(path.absolute()), _below(path, root)
        refused[FoundFile(path=f"{name}/", relative=f"{relative}/", bytes=0)] = folders[path]
    return files, refused


def _version(status: os.stat_result) -> int:
    """Return what differs once a file, or what may be done with it, has changed: 64 bits of it."""
    times = status.st_mtime_ns, status.st_ctime_ns
    return hash((status.st_dev, status.st_ino, status.st_size, *times))


def _describe(path: Path, status: os.stat_result, *, root: Path) -> tuple[FoundFile, str]:
    """Return what lies at a path, and why it cannot be an input; empty if it can."""
    name = _spelt(path.absolute())
    file = FoundFile(
        path=name,
        relative=_below(path, root),
        bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
    )
    if name != str(path.absolute()):
        return file, "has a name that is not UTF-8: rename it"
    if not stat.S_ISREG(status.st_mode):
        return file, "is neither a file nor a folder"
    return file, _refusal(path, file.bytes)


def _refusal(path: Path, size: int) -> str:
    """Return why a file cannot be read; empty if it can."""
    try:
        # Only opening it tells; without the flag, what has become a FIFO meanwhile would wait.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            head = os.read(handle, _HEAD_BYTES) if size <= _MOST_OF_A_STAND_IN else b""
        finally:
            os.close(handle)
    except OSError as error:
        return why_not(path, error, what="read")
    for start, remedy in _STAND_INS.items():
        if head.startswith(start):
            return f"stands for a file that was not fetched: {remedy} fetches it"
    return ""


def _below(path: Path, root: Path) -> str:
    return _spelt(PurePosixPath(path.relative_to(root)))


def _spelt(path: PurePath) -> str:
    """Return a path; what is not UTF-8 in it is spelt out."""
    return os.fsencode(path).decode(errors="backslashreplace")
