"""Inputs and how they are cut: matching files, byte ranges, and the check that ranges join.

A *split* is a byte range of a file. Its size depends on the file and on `split_bytes` alone,
so that the same corpus is cut the same way for any number of workers.
"""

import dataclasses
import glob
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from shards.errors import UserError

NAME = re.compile(r"[A-Za-z0-9_.-]+")
NAMES_SHOWN = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputFile:
    """One file of an input."""

    source: str
    """Name of the input."""
    path: str
    """Absolute path. Operational: no part of any identity."""
    relative: str
    """Posix path below the input's root."""
    bytes: int
    """Size of the file as stored."""
    mtime_ns: int
    """Time of the last change in nanoseconds. Operational."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split:
    """The bytes [start, end) of an input file."""

    source: str
    path: str
    relative: str
    file_bytes: int
    start: int
    end: int
    mtime_ns: int

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Split":
        """Return the split that `to_json` described."""
        return cls(**fields)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Link:
    """What reading a split says about its seams; all three are byte offsets in the file."""

    end: int
    """End of the split's range."""
    first: int | None
    """Where the reading began: a record of the range, in a file's first split the array itself.

    None when no record was found to begin in the range.
    """
    next: int | None
    """Where the reading stopped: a record at or after `end`, or the end of the file.

    None when `first` is.
    """


def match_inputs(specs: Sequence[str], *, pattern: str, default_name: str) -> list[InputFile]:
    """Return the files that `specs` name, sorted by (source, relative).

    Args:
        specs: Each one a folder, a file or a glob, or NAME= followed by one of these. A path
            that exists is taken as it is, even when it holds an equals sign.
        pattern: Which files of a folder count, for example `part-*.json`; subfolders included.
        default_name: The name of a single input that has none.

    Raises:
        UserError: A path is missing, unreadable, empty or given twice; a folder or glob matches
            nothing; several inputs are not told apart by their names.
    """
    if not specs:
        raise UserError("No input was given; pass a folder, a file or a glob, or NAME=PATH.")
    named = [_parse_spec(spec) for spec in specs]
    _check_names([name for name, _ in named])
    files = [
        file for name, path in named for file in _match(name or default_name, path, pattern=pattern)
    ]
    _check_distinct(files)
    return sorted(files, key=lambda file: (file.source, file.relative))


def split_file(file: InputFile, split_bytes: int) -> list[Split]:
    """Return the splits of a file, in order and without gaps.

    All are `split_bytes` long but the last, which takes the remainder: half a split to one and a
    half (a shorter file is one split).

    Raises:
        ValueError: `split_bytes` is below 1.
    """
    if split_bytes < 1:
        raise ValueError(f"split_bytes must be at least 1, not {split_bytes}")
    count = max(1, (2 * file.bytes + split_bytes) // (2 * split_bytes))
    edges = [index * split_bytes for index in range(count)] + [file.bytes]
    return [
        Split(
            source=file.source,
            path=file.path,
            relative=file.relative,
            file_bytes=file.bytes,
            start=start,
            end=end,
            mtime_ns=file.mtime_ns,
        )
        for start, end in itertools.pairwise(edges)
    ]


def seamless(chain: Sequence[Link]) -> bool:
    """Return whether the splits of one file, in file order, read what one split would have read.

    The first split starts where the file's array starts, so its reading is right. Each later one
    is right if it began where the reading before it stopped, or found nothing in a range that
    the reading before it had passed. When this is False the file has to be read as one split.
    """
    position = chain[0].next
    for link in chain[1:]:
        if position is None:
            return False
        if link.first is None:
            if position < link.end:
                return False
        elif link.first == position:
            position = link.next
        else:
            return False
    return position is not None


def open_input(path: str) -> BinaryIO:
    """Return the file at `path`, opened for reading from its start.

    Raises:
        UserError: The file cannot be opened.
    """
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise UserError(f"Cannot read the input {path}: {error.strerror}.") from error


def _parse_spec(spec: str) -> tuple[str | None, str]:
    name, equals, path = spec.partition("=")
    if not equals or "/" in name or Path(spec).exists():
        return None, spec
    if not NAME.fullmatch(name):
        raise UserError(
            f"The name {name!r} of the input {spec!r} will not do: use letters, digits, dots, "
            "dashes and underscores, for example news=/data/news."
        )
    return name, path


def _check_names(names: Sequence[str | None]) -> None:
    if len(names) > 1 and None in names:
        raise UserError(
            f"{len(names)} inputs were given and not all have a name; "
            "give each one its own, for example news=/data/news books=/data/books."
        )
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise UserError(f"Two inputs are called {repeated[0]!r}; give each one its own name.")


def _match(source: str, path: str, *, pattern: str) -> Iterable[InputFile]:
    if not path:
        raise UserError(f"The input {source!r} has an empty path; pass a folder, file or glob.")
    if "://" in path:
        raise UserError(f"The input {path} is a URL; only local files can be read so far.")
    here = Path(path)
    if here.is_dir():
        root, paths = here, _files(here.rglob(pattern))
        if not paths:
            raise UserError(f"No file in {path} matches {pattern!r}; {_inventory(here)}.")
    elif here.exists():
        root, paths = here.parent, [here]
    elif glob.has_magic(path):
        root = _fixed_folder(here)
        paths = _files(root.glob(str(here.relative_to(root))))
        if not paths:
            raise UserError(f"No file matches {path}; {_inventory(root)}.")
    else:
        raise UserError(f"The input {path} does not exist; {_inventory(here.parent)}.")
    return [_input_file(source, file, root=root) for file in paths]


def _files(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if path.is_file())


def _fixed_folder(path: Path) -> Path:
    """Return the folders of a glob before the first part with a wildcard."""
    parts = path.parts
    first = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:first])


def _inventory(folder: Path) -> str:
    if not folder.is_dir():
        return f"there is no folder {folder}"
    names = sorted(entry.name for entry in folder.iterdir())
    if not names:
        return f"{folder} is empty"
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{folder} holds {', '.join(names[:NAMES_SHOWN])}{more}"


def _input_file(source: str, path: Path, *, root: Path) -> InputFile:
    relative = path.relative_to(root).as_posix()
    if any("\ud800" <= char <= "\udfff" for char in relative):
        raise UserError(f"The name of the input file {str(path)!r} is not UTF-8; rename it.")
    if not path.is_file():
        raise UserError(f"The input {path} is neither a file nor a folder.")
    if not os.access(path, os.R_OK):
        raise UserError(f"The input file {path} may not be read; check its permissions.")
    status = path.stat()
    if not status.st_size:
        raise UserError(f"The input file {path} is empty (0 bytes); fetch it again or remove it.")
    return InputFile(
        source=source,
        path=str(path.absolute()),
        relative=relative,
        bytes=status.st_size,
        mtime_ns=status.st_mtime_ns,
    )


def _check_distinct(files: Sequence[InputFile]) -> None:
    seen: dict[Path, InputFile] = {}
    for file in files:
        other = seen.setdefault(Path(file.path).resolve(), file)
        if other is not file:
            raise UserError(
                f"The file {file.path} is given twice, in {other.source!r} as {other.relative} "
                f"and in {file.source!r} as {file.relative}; leave one out."
            )
