"""The input files of a dataset, found again where they lie now, and checked to be the same."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.inputs.files import InputFile, match_inputs
from pipelines.inputs.found_file import FoundFile
from pipelines.inputs.local_files import find_local
from pipelines.inputs.remote_files import open_remote
from pipelines.readers.reading import Reading
from pipelines.run.existing import INPUTS, file_crc32c
from shards.errors import UserError
from shards.manifest import InputEntry, Manifest
from shards.storage.address import is_url
from shards.storage.files import read_json
from shards.storage.remote import AnyPath

Key = tuple[str, str]
"""Source and path of a file."""


@dataclass(frozen=True, kw_only=True)
class FileState:
    """Where a file lay when the dataset was made, and its state then."""

    path: str
    mtime_ns: int
    etag: str


def entries_of(manifest: Manifest) -> dict[Key, InputEntry]:
    """Return what a manifest says of the files that its dataset was made of."""
    return {(each.source, each.path): each for part in manifest.generations for each in part.inputs}


def find_again(
    directory: AnyPath,
    wanted: Collection[Key],
    *,
    moved: Sequence[str],
    patterns: Mapping[str, str | tuple[str, ...]],
    default_name: str,
) -> list[InputFile]:
    """Return some of a dataset's input files, by source and path.

    Args:
        directory: The dataset.
        wanted: The files.
        moved: Inputs of the sources that lie elsewhere now: PATH or NAME=PATH.
        patterns: Which files of a folder count, by source.
        default_name: The source that a PATH without name is.

    Raises:
        UserError: A file is not there.
    """
    new = _moved(moved, patterns, default_name=default_name)
    sources = {source for source, _ in new}
    missing = sorted(key for key in wanted if key[0] in sources and key not in new)
    if missing:
        source, path = missing[0]
        raise UserError(
            f"--input {source}=…: there is no {path} in it ({len(missing)} of the files that are "
            "needed are missing); name the folder, or the file, that the first run was given, "
            "where it lies now"
        )
    places = _places(directory)
    return [
        new[key] if key in new else _at_its_place(key, places.get(key)) for key in sorted(wanted)
    ]


def check_same(
    files: Iterable[InputFile],
    entries: Mapping[Key, InputEntry],
    *,
    directory: AnyPath,
    readings: Mapping[str, Reading],
    split_bytes: int,
) -> None:
    """Check that files are those that a dataset was made of, by size and, where times differ, crc.

    Args:
        files: The files as they are now.
        entries: What they were.
        directory: The dataset.
        readings: How the files of each source are read.
        split_bytes: How they were cut.

    Raises:
        UserError: One is not.
    """
    places = _places(directory)
    for file in files:
        key = file.source, file.relative
        entry, place = entries[key], places.get(key)
        change = ""
        if file.bytes != entry.bytes:
            change = f"has {file.bytes:,} bytes and had {entry.bytes:,}"
        elif (
            place is None
            or not (place.mtime_ns or place.etag)
            or (file.mtime_ns, file.etag) != (place.mtime_ns, place.etag)
        ):
            reading = readings[file.source]
            found = file_crc32c(file, entry, reading=reading, split_bytes=split_bytes)
            change = "" if found == entry.crc32c else "has other bytes (crc32c)"
        if change:
            raise UserError(
                f"The input {file.path} has changed since {directory} was made: it {change}. "
                "Places in it mean nothing any more: run the corpus again on what is there now, "
                "or name the file as it was with --input NAME=PATH"
            )


def _moved(
    specs: Sequence[str], patterns: Mapping[str, str | tuple[str, ...]], *, default_name: str
) -> dict[Key, InputFile]:
    found: dict[Key, InputFile] = {}
    for spec in specs:
        name, equals, _ = spec.partition("=")
        named = equals and "/" not in name and not Path(spec).exists()
        source = name if named else default_name
        if source not in patterns:
            raise UserError(
                f"--input {spec}: the dataset has no such source; it has "
                f"{', '.join(sorted(patterns))}. Write NAME=PATH with one of these"
            )
        for file in match_inputs((spec,), pattern=patterns[source], default_name=source):
            found[file.source, file.relative] = file
    return found


def _places(directory: AnyPath) -> dict[Key, FileState]:
    path = directory / INPUTS
    if not path.is_file():
        return {}
    return {
        (each["source"], each["path"]): FileState(
            path=each["from"], mtime_ns=each["mtime_ns"], etag=each["etag"]
        )
        for each in read_json(path)
    }


def _at_its_place(key: Key, place: FileState | None) -> InputFile:
    source, relative = key
    if place is None:
        raise UserError(
            f"the dataset does not tell where {relative} of {source} lies: its {INPUTS} is not "
            f"there or does not name it. Give --input {source}=PATH"
        )
    try:
        now = _now(place.path)
    except UserError as error:
        raise UserError(
            f"{error} It is an input of the dataset; if it was moved, say where to: --input "
            f"{source}=PATH"
        ) from error
    return InputFile(
        source=source,
        path=place.path,
        relative=relative,
        bytes=now.bytes,
        mtime_ns=now.mtime_ns,
        etag=now.etag,
    )


def _now(path: str) -> FoundFile:
    if is_url(path):
        handle, found = open_remote(path)
        handle.close()
        return found
    (found,) = find_local(path, ())
    return found
