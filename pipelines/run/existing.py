"""What an earlier run left: finished splits to use again, or a dataset that is there already."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.inputs.sources import InputFile
from pipelines.map.attempts import forget
from pipelines.map.resume import unchanged
from pipelines.readers.reading import Reading, splits, stored_crc32c
from shards.errors import DamageError, UserError
from shards.flags import flag_of
from shards.manifest import WORK, InputEntry, Manifest
from shards.storage.files import TEMPORARY, read_json, size_if_there
from shards.storage.remote import AnyPath, RemotePath

_LOG = logging.getLogger("corpusmill")

INPUTS = "inputs.json"
"""What a dataset was made of, with times: about the run, no part of the dataset."""


def remove_leftovers(output: AnyPath) -> None:
    """Delete what attempts that were killed left half-written; the lock must be held."""
    forget(output / WORK)
    if isinstance(output, RemotePath):
        return  # nothing half-written shows there
    for path in output.rglob(f"{TEMPORARY}*"):
        path.unlink(missing_ok=True)
    for path in (output / WORK / "progress").glob("*"):
        path.unlink(missing_ok=True)


def check_same(manifest: Manifest, options: Mapping[str, Any], *, output: AnyPath) -> None:
    """Check that a dataset was made with these semantic options.

    Raises:
        UserError: It was not; the message names the options that differ.
    """
    names = sorted({*options, *manifest.options})
    differing = [name for name in names if options.get(name) != manifest.options.get(name)]
    if "code" in differing:
        raise UserError(
            f"{output} holds a dataset that other code of its corpus {manifest.corpus!r} made: its "
            "module, or what that imports from its own package, was edited since. Choose another "
            "--output, or give --overwrite to replace it"
        )
    if differing:
        odd = [
            f"{flag_of(name)} is {_shown(options.get(name))}, "
            f"the dataset has {_shown(manifest.options.get(name))}"
            for name in differing
        ]
        raise UserError(
            f"{output} holds a dataset made with other options: {'; '.join(odd)}. Choose another "
            "--output, or give --overwrite to replace it"
        )


def check_corpus(manifest: Manifest, corpus: str, *, output: AnyPath) -> None:
    """Check that a dataset was made by a corpus's command.

    Raises:
        UserError: It was another's.
    """
    if manifest.corpus != corpus:
        raise UserError(
            f"{output} holds a dataset of pipelines.{manifest.corpus}, not of pipelines.{corpus}. "
            "Choose another --output, or give --overwrite to replace it"
        )


def check_inputs(
    manifest: Manifest,
    files: Sequence[InputFile],
    *,
    readings: Mapping[str, Reading],
    split_bytes: int,
    output: AnyPath,
) -> None:
    """Check that a dataset was made of these files, by name, size and, where times differ, crc32c.

    Raises:
        UserError: It was not; the message names the first file that differs.
    """
    had = {(each.source, each.path): each for part in manifest.generations for each in part.inputs}
    have = {(file.source, file.relative): file for file in files}
    states = {key: "is gone" for key in had.keys() - have.keys()}
    states |= {key: "is new" for key in have.keys() - had.keys()}
    versions = _versions(output)
    for key in had.keys() & have.keys():
        same = had[key].bytes == have[key].bytes and (
            unchanged(have[key], versions.get(key))
            or had[key].crc32c
            == file_crc32c(have[key], had[key], reading=readings[key[0]], split_bytes=split_bytes)
        )
        if not same:
            states[key] = "has changed"
    for key in sorted(states)[:1]:
        raise UserError(
            f"{output} holds a dataset of other input: {'/'.join(key)} {states[key]} "
            f"({len(states)} files differ). Choose another --output, or give --overwrite to "
            "replace it"
        )


def check_files(manifest: Manifest, *, output: AnyPath) -> None:
    """Check that the files of a dataset are there in their sizes.

    Raises:
        DamageError: One is not.
    """
    for name, entry in manifest.files():
        path = output / name
        size = size_if_there(path)
        if size != entry.bytes:
            state = "is missing" if size < 0 else f"has {size:,} bytes, not {entry.bytes:,}"
            raise DamageError(
                f"{path} {state}: the dataset is damaged. Restore the file from a copy, or give "
                "--overwrite to build the dataset again"
            )


def file_crc32c(
    file: InputFile, entry: InputEntry, *, reading: Reading, split_bytes: int
) -> tuple[int, ...]:
    """Return the crc32c of a file's splits, cut as they were for the dataset."""
    size = file.bytes if len(entry.crc32c) == 1 else split_bytes
    return tuple(stored_crc32c(split, reading) for split in splits(file, reading, split_bytes=size))


def _versions(output: AnyPath) -> dict[tuple[str, str], tuple[int, str]]:
    """Return time and etag of the files that the dataset was made of, where they are told."""
    path = output / INPUTS
    if not path.exists():
        return {}
    return {
        (each["source"], each["path"]): (each["mtime_ns"], each.get("etag", ""))
        for each in read_json(path)
    }


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
