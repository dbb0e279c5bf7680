"""The input files of a dataset: where they are now, and whether they are still the same."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipelines.inputs.files import InputFile, input_names, list_inputs
from pipelines.inputs.local_files import find_local
from pipelines.inputs.remote_files import open_remote
from pipelines.readers.reading import Reading
from pipelines.run.existing import INPUTS, file_crc32c, read_inputs
from shards.errors import UserError
from shards.manifest import InputEntry, Manifest
from shards.spelling import expected
from shards.storage.address import is_url
from shards.storage.remote import AnyPath

Key = tuple[str, str]
"""Source and path of a file."""


@dataclass(frozen=True, kw_only=True)
class FileState:
    """Path and state of a file when the dataset was made."""

    path: str
    mtime_ns: int
    etag: str


def entries_of(manifest: Manifest) -> dict[Key, InputEntry]:
    """Return the input files of a dataset as its manifest records them."""
    return {
        (entry.source, entry.path): entry
        for generation in manifest.generations
        for entry in generation.inputs
    }


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
        moved: Where the inputs of some sources are now: PATH or NAME=PATH.
        patterns: Which files of a folder are read, by source.
        default_name: The source of a PATH without a name.

    Raises:
        UserError: A file is missing.
    """
    found = _moved(moved, patterns, default_name=default_name)
    sources = {source for source, _ in found}
    missing = sorted(key for key in wanted if key[0] in sources and key not in found)
    if missing:
        source, path = missing[0]
        raise UserError(
            f"--input {source}=…: there is no {path} in it ({len(missing)} of the files that are "
            "needed are missing); give the present path of the folder, or the file, that the first "
            "run was given"
        )
    states = _states(directory)
    return [
        found[key] if key in found else _at_its_path(key, states.get(key)) for key in sorted(wanted)
    ]


def check_unchanged(
    files: Iterable[InputFile],
    entries: Mapping[Key, InputEntry],
    *,
    directory: AnyPath,
    readings: Mapping[str, Reading],
    split_bytes: int,
) -> None:
    """Check that files have not changed since: by size and, where times differ, by crc32c.

    Args:
        files: The files as they are now.
        entries: The files as the dataset was made of them.
        directory: The dataset.
        readings: How the files of each source are read.
        split_bytes: How they were cut into splits.

    Raises:
        UserError: A file has changed.
    """
    states = _states(directory)
    for file in files:
        key = file.source, file.relative
        entry, state = entries[key], states.get(key)
        change = ""
        if file.bytes != entry.bytes:
            change = f"has {file.bytes:,} bytes and had {entry.bytes:,}"
        elif (
            state is None
            or not (state.mtime_ns or state.etag)
            or (file.mtime_ns, file.etag) != (state.mtime_ns, state.etag)
        ):
            reading = readings[file.source]
            crc32c = file_crc32c(file, entry, reading=reading, split_bytes=split_bytes)
            change = "" if crc32c == entry.crc32c else "has other bytes (crc32c)"
        if change:
            raise UserError(
                f"The input {file.path} has changed since {directory} was made: it {change}. "
                "The recorded positions no longer apply: run the corpus again on the files as they "
                "are now, or give the original file with --input NAME=PATH"
            )


def _moved(
    specs: Sequence[str], patterns: Mapping[str, str | tuple[str, ...]], *, default_name: str
) -> dict[Key, InputFile]:
    files: dict[Key, InputFile] = {}
    for spec in specs:
        (source,) = input_names((spec,), default_name=default_name)
        if source not in patterns:
            raise UserError(
                f"--input {spec}: the dataset has no such source: "
                f"{expected(source, sorted(patterns))}, as NAME=PATH"
            )
        # What cannot be read was none of the dataset's inputs, or will be missed.
        listing = list_inputs((spec,), pattern=patterns[source], default_name=source)
        files.update({(file.source, file.relative): file for file in listing.files})
    return files


def _states(directory: AnyPath) -> dict[Key, FileState]:
    return {
        (file["source"], file["path"]): FileState(
            path=file["from"], mtime_ns=file["mtime_ns"], etag=file.get("etag", "")
        )
        for file in read_inputs(directory)
        if file.get("from")
    }


def _at_its_path(key: Key, state: FileState | None) -> InputFile:
    source, relative = key
    if state is None:
        raise UserError(
            f"the path of {relative} of {source} is unknown: the dataset's {INPUTS} is missing or "
            f"does not name it. Give --input {source}=PATH"
        )
    try:
        now = _now(state.path)
    except UserError as error:
        raise UserError(
            f"{error} It is an input of the dataset; if it was moved, give its new path: --input "
            f"{source}=PATH"
        ) from error
    return InputFile(
        source=source,
        path=state.path,
        relative=relative,
        bytes=now.bytes,
        mtime_ns=now.mtime_ns,
        etag=now.etag,
    )


def _now(path: str) -> InputFile:
    if is_url(path):
        handle, found = open_remote(path)
        handle.close()
        return found
    files, refused = find_local(path, ())
    for why in refused.values():
        raise UserError(f"The input {path} {why}.")
    return files[0]
