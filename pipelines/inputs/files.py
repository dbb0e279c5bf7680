"""Inputs and how they are cut: matching files, byte ranges, and the check that ranges join.

An input is a path, a URL (remote_files.py) or a dataset of the Hugging Face hub (hub.py).

A *split* is a byte range of a file. Its size depends on the file and on `split_bytes` alone,
so that the same corpus is cut the same way for any number of workers.
"""

import dataclasses
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from pipelines.inputs.found import Found
from pipelines.inputs.hub import find_dataset, is_dataset
from pipelines.inputs.local_files import find_local
from pipelines.inputs.remote_files import find_remote, open_remote
from shards.errors import UserError
from shards.storage.address import is_url

NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclasses.dataclass(frozen=True, kw_only=True)
class InputFile:
    """One file of an input."""

    source: str
    """Name of the input."""
    path: str
    """Absolute path, or URL. Operational: no part of any identity."""
    relative: str
    """Posix path below the input's root; for the hub: OWNER/NAME@COMMIT/path."""
    bytes: int
    """Size of the file as stored."""
    mtime_ns: int
    """Time of the last change in nanoseconds; 0 for a URL. Operational."""
    etag: str = ""
    """What a server says of the file's version; empty for a local file. Operational."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split:
    """The bytes [start, end) of an input file; of a Parquet file its rows [start, end)."""

    source: str
    path: str
    relative: str
    file_bytes: int
    start: int
    end: int
    mtime_ns: int
    etag: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Split":
        """Return the split that `to_json` described."""
        return cls(**fields)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Link:
    """What reading a split says about its seams; all three count as the split's range does."""

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


def match_inputs(
    specs: Sequence[str], *, pattern: str | tuple[str, ...], default_name: str
) -> list[InputFile]:
    """Return the files that `specs` name, sorted by (source, relative).

    Args:
        specs: Each one a folder, a file or a glob, as a path or a URL that fsspec knows
            (s3://bucket/folder), or hf:OWNER/NAME[@REVISION][:CONFIG[:SPLIT]], or NAME= followed
            by one of these. A path that exists is taken as it is, even when it holds an equals
            sign.
        pattern: Which files of a folder count, for example `part-*.json`, or several such
            patterns; subfolders included.
        default_name: The name of a single input that has none.

    Raises:
        UserError: A path is missing, unreadable, empty or given twice; a folder or glob matches
            nothing; several inputs are not told apart by their names.
    """
    if not specs:
        raise UserError("No input was given; pass a folder, a file or a glob, or NAME=PATH.")
    named = [_parse_spec(spec) for spec in specs]
    _check_names([name for name, _ in named])
    patterns = (pattern,) if isinstance(pattern, str) else pattern
    files = [
        _input_file(name or default_name, found)
        for name, path in named
        for found in _find(name or default_name, path, patterns=patterns)
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
            etag=file.etag,
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
    """Return the file at a path or URL, seekable, opened for reading from its start.

    Raises:
        UserError: The file cannot be opened; of a URL, reading raises it as well.
    """
    return open_remote(path)[0] if is_url(path) else _open_local(path)


def open_split(split: Split) -> BinaryIO:
    """Return the file of a split as `open_input` does, if it is the file that was cut.

    Raises:
        UserError: It cannot be opened, or has another size, time or etag than it had then.
    """
    if is_url(split.path):
        file, found = open_remote(split.path)
        now = (found.bytes, split.mtime_ns, found.etag)
    else:
        file = _open_local(split.path)
        status = os.fstat(file.fileno())
        now = (status.st_size, status.st_mtime_ns, split.etag)
    if now == (split.file_bytes, split.mtime_ns, split.etag):
        return file
    file.close()
    change = (
        f"has {now[0]} bytes and had {split.file_bytes} when the run began"
        if now[0] != split.file_bytes
        else "was written again after the run began"
    )
    raise UserError(
        f"The input {split.path} {change}: it is being changed. Run the command again when it is "
        "complete."
    )


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turn what goes wrong with a local file while it is read into a paragraph for the person.

    Raises:
        UserError: The file is gone or may not be read, or its disk fails.
    """
    try:
        yield
    except OSError as error:
        raise UserError(
            f"Cannot read the input {path}: {error.strerror or error}. Check the file and its "
            "disk and run the same command again; finished work is kept."
        ) from error


def _open_local(path: str) -> BinaryIO:
    with readable(path):
        return Path(path).open("rb")


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


def _find(source: str, path: str, *, patterns: Sequence[str]) -> list[Found]:
    if not path:
        raise UserError(f"The input {source!r} has an empty path; pass a folder, file or glob.")
    path = path.removeprefix("file://")
    if is_dataset(path):
        return find_dataset(path)
    return find_remote(path, patterns) if is_url(path) else find_local(path, patterns)


def _input_file(source: str, found: Found) -> InputFile:
    if not found.bytes:
        raise UserError(
            f"The input file {found.path} is empty (0 bytes); fetch it again or remove it."
        )
    return InputFile(source=source, **dataclasses.asdict(found))


def _check_distinct(files: Sequence[InputFile]) -> None:
    seen: dict[str | Path, InputFile] = {}
    for file in files:
        place = file.path if is_url(file.path) else Path(file.path).resolve()
        other = seen.setdefault(place, file)
        if other is not file:
            raise UserError(
                f"The file {file.path} is given twice, in {other.source!r} as {other.relative} "
                f"and in {file.source!r} as {file.relative}; leave one out."
            )
