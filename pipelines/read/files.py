"""Finds, names and opens the input files of a run.

An input is a path (local_files.py), a URL (remote_files.py) or a dataset of the Hugging Face hub
(hub.py).
"""

import dataclasses
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pipelines.read.hub import find_hub_dataset, is_hub_dataset
from pipelines.read.input_file import InputFile as InputFile  # noqa: PLC0414 - a public name
from pipelines.read.input_file import shown
from pipelines.read.listing import Listing, in_one_folder
from pipelines.read.local_files import find_local
from pipelines.read.remote_files import find_remote, open_remote
from shards.errors import UserError
from shards.storage.address import is_url

NAME = re.compile(r"[A-Za-z0-9_.-]+")

_DESCRIPTIONS = ("state.json", "dataset_info.json", "dataset_dict.json")
"""Files in which the save_to_disk methods of Dataset and DatasetDict describe their Arrow files."""

_LOG = logging.getLogger("corpusmill")
_LOCAL = re.compile("^(file|local)://")


def match_inputs(
    specs: Sequence[str], *, pattern: str | tuple[str, ...], default_name: str
) -> list[InputFile]:
    """Return the files that `list_inputs` finds, after checking that all files can be read.

    Skipped files are logged.

    Raises:
        UserError: See `list_inputs`; or a file or folder cannot be read, or a file is empty.
    """
    listing = list_inputs(specs, pattern=pattern, default_name=default_name)
    listing.check()
    listing.log_remarks()
    return listing.files


def list_inputs(
    specs: Sequence[str],
    *,
    pattern: str | tuple[str, ...],
    default_name: str,
    growing: bool = False,
) -> Listing:
    """List the files that `specs` name: readable files by (source, relative), and unreadable files.

    Args:
        specs: Each spec is a folder, a file or a glob, as a path or a URL that fsspec knows
            (s3://bucket/folder), or hf:OWNER/NAME[@REVISION][:CONFIG[:SPLIT]], or NAME= followed by
            one of these. A path that exists is taken literally, even if it contains an equals
            sign. Several paths without a name are one input, whose files are named relative to the
            deepest folder that contains all these paths.
        pattern: The pattern, or patterns, of the files to read in a folder and its subfolders, for
            example `part-*.json`.
        default_name: The name of the input whose paths are given without a name.
        growing: Whether files may be added and removed later, so that a folder or glob may match no
            file yet.

    Raises:
        UserError: A path is missing or given twice; a folder or glob matches nothing, unless
            `growing` is set; only some inputs have names, or two have the same name.
    """
    if not specs:
        raise UserError("No input was given; pass a folder, a file or a glob, or NAME=PATH.")
    patterns = (pattern,) if isinstance(pattern, str) else pattern
    remedy = "it is read once it has content" if growing else "fetch it again"
    listings = []
    for source, paths in named_inputs(specs, default_name):
        found = [_find(path, patterns, growing=growing) for path in paths]
        listings.append(_without_empty(in_one_folder(found, source), remedy))
    listing = Listing.joined(listings)
    if len(specs) > 1:  # Only different paths can list the same file.
        _check_distinct(listing.files)
    return listing


def _without_empty(listing: Listing, remedy: str) -> Listing:
    """Return a listing in which empty files are refused and descriptions of Arrow files hidden."""
    folders = {_folder(file.path) for file in listing.files if file.path.endswith(".arrow")}
    folders |= {_folder(folder) for folder in folders}  # dataset_dict.json is one folder up.
    described = {
        file.path
        for file in listing.files
        if _folder(file.path) in folders and file.path.rpartition("/")[2] in _DESCRIPTIONS
    }
    files = [file for file in listing.files if file.path not in described]
    empty = {file: f"is empty (0 bytes): {remedy}" for file in files if not file.bytes}
    return dataclasses.replace(
        listing,
        files=[file for file in files if file.bytes],
        refused={**empty, **listing.refused},
        hidden=[*listing.hidden, *sorted(described)],
    )


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def input_paths(specs: Sequence[str]) -> list[str]:
    """Return the path of each input as given, but without file:// or local://."""
    return [_LOCAL.sub("", _parse_spec(spec)[1]) for spec in specs]


def named_inputs(specs: Sequence[str], default_name: str) -> list[tuple[str, list[str]]]:
    """Return each input's name and paths; only the input without a name may have several paths.

    Raises:
        UserError: Only some inputs have names, two have the same name, or a path is empty.
    """
    named = [_parse_spec(spec) for spec in specs]
    _check_names([name for name, _ in named])
    inputs: dict[str, list[str]] = {}
    for name, path in named:
        source = name or default_name
        if not path:
            raise UserError(f"The input {source!r} has an empty path; pass a folder, file or glob.")
        inputs.setdefault(source, []).append(_LOCAL.sub("", path))
    return [*inputs.items()]


def open_input(path: str) -> BinaryIO:
    """Open the file at a path or URL for reading from its start; the result is seekable.

    Raises:
        UserError: The file cannot be opened. For a URL, reading the file may raise this too.
    """
    return open_remote(path)[0] if is_url(path) else _open_local(path)


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turn an error of the operating system while a local file is read into a UserError.

    Raises:
        UserError: The file is missing, reading is not permitted, or the disk fails.
    """
    try:
        yield
    except OSError as error:
        raise UserError(
            f"Cannot read the input {path}: {error.strerror or error}. Check the file and its "
            "disk and run the same command again; finished work is kept."
        ) from error


def read_exactly(handle: BinaryIO, size: int, *, path: str, offset: int, file_bytes: int) -> bytes:
    """Return the next `size` bytes of an input file.

    Args:
        handle: The open file.
        size: The number of bytes to read; the file contained them when it was cut into splits.
        path: The path of the file.
        offset: The current position of the handle in the file.
        file_bytes: The size of the file when it was cut into splits.

    Raises:
        UserError: The file has become shorter.
    """
    data = handle.read(size)
    if len(data) != size:
        raise UserError(
            f"The input {path} ended at byte {offset + len(data)} of {file_bytes}: it changed "
            "while it was read. Run the command again when it is complete."
        )
    return data


def _open_local(path: str) -> BinaryIO:
    with readable(path):
        return Path(path).open("rb")


def _parse_spec(spec: str) -> tuple[str | None, str]:
    try:
        spec.encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"The name of the input {shown(spec)} is not UTF-8: rename the file or folder."
        ) from error
    name, equals, path = spec.partition("=")
    if not equals or "/" in name or os.path.lexists(spec):
        return None, spec
    if not NAME.fullmatch(name):
        raise UserError(
            f"The name '{shown(name)}' of the input '{shown(spec)}' is not allowed: use letters, "
            "digits, dots, dashes and underscores, for example news=/data/news."
        )
    return name, path


def _check_names(names: Sequence[str | None]) -> None:
    if None in names and len({*names}) > 1:
        raise UserError(
            f"{len(names)} inputs were given and not all have a name; name each, for example "
            "--input news=/data/news --input books=/data/books."
        )
    repeated = [name for name, count in Counter(names).items() if name and count > 1]
    if repeated:
        raise UserError(f"Two inputs are called {repeated[0]!r}; give them different names.")


def _find(path: str, patterns: Sequence[str], *, growing: bool) -> Listing:
    """Return a listing of the files that a path names, with reasons for the unreadable ones."""
    if is_hub_dataset(path):
        return find_hub_dataset(path)
    find = find_remote if is_url(path) else find_local
    return find(path, patterns, growing=growing)


def _check_distinct(files: Sequence[InputFile]) -> None:
    seen: dict[str, InputFile] = {}
    for file in files:
        location = file.path if is_url(file.path) else os.path.realpath(file.path)
        other = seen.setdefault(location, file)
        if other is not file:
            where = (
                f", in {other.source!r} as {shown(other.relative)} and in {file.source!r} as "
                f"{shown(file.relative)}"
            )
            where = where if other.name != file.name else ""
            raise UserError(f"The file {shown(file.path)} is given twice{where}; leave one out.")
