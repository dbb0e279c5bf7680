"""What an earlier run left in the output: leftovers of killed attempts, or a finished dataset."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.corpus.code import CODE
from pipelines.inputs.files import InputFile
from pipelines.map.attempts import forget
from pipelines.map.resume import unchanged
from pipelines.readers.reading import Reading, splits, stored_crc32c
from shards.errors import DamageError, UserError
from shards.flags import flag_of
from shards.manifest import WORK, InputEntry, Manifest
from shards.storage.files import TEMPORARY, read_json, size_if_there
from shards.storage.remote import AnyPath, RemotePath

INPUTS = "inputs.json"
"""The input files of a dataset with their times: about the run, not part of the dataset."""


def remove_leftovers(output: AnyPath) -> None:
    """Delete the half-written files of killed attempts; the lock must be held."""
    forget(output / WORK)
    if isinstance(output, RemotePath):
        return  # nothing half-written is visible there
    for path in output.rglob(f"{TEMPORARY}*"):
        path.unlink(missing_ok=True)
    for path in (output / WORK / "progress").glob("*"):
        path.unlink(missing_ok=True)


def check_options(manifest: Manifest, options: Mapping[str, Any], *, output: AnyPath) -> None:
    """Check that a dataset was made with these semantic options.

    Raises:
        UserError: It was not; the message names the options that differ.
    """
    names = sorted({*options, *manifest.options})
    differing = [name for name in names if options.get(name) != manifest.options.get(name)]
    if not differing:
        return
    odd = [
        f"{flag_of(name)} is {_shown(options.get(name))}, "
        f"the dataset has {_shown(manifest.options.get(name))}"
        for name in differing
        if name != CODE
    ]
    if CODE in differing:
        changed = "was edited since" if CODE in manifest.options else "was not recorded then"
        odd.append(
            f"the code of the corpus {manifest.corpus!r} (its module, and what that imports of its "
            f"own) {changed}"
        )
    raise UserError(
        f"{output} holds a dataset made with other options: {'; '.join(odd)}. Choose another "
        "--output, or give --overwrite to replace it"
    )


def check_corpus(manifest: Manifest, corpus: str, *, output: AnyPath) -> None:
    """Check that a dataset was made by the command of this corpus.

    Raises:
        UserError: Another command made it.
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
    """Check that a dataset was made of these files: name, size and, where times differ, crc32c.

    Raises:
        UserError: It was not; the message names the first file that differs.
    """
    before = {
        (entry.source, entry.path): entry
        for generation in manifest.generations
        for entry in generation.inputs
    }
    now = {(file.source, file.relative): file for file in files}
    changes = {key: "is gone" for key in before.keys() - now.keys()}
    changes |= {key: "is new" for key in now.keys() - before.keys()}
    times = _times(output)
    for key in before.keys() & now.keys():
        file, entry = now[key], before[key]
        if file.bytes != entry.bytes or not (
            unchanged(file, times.get(key))
            or entry.crc32c
            == file_crc32c(file, entry, reading=readings[file.source], split_bytes=split_bytes)
        ):
            changes[key] = "has changed"
    if changes:
        first = min(changes)
        raise UserError(
            f"{output} holds a dataset of other input: {'/'.join(first)} {changes[first]} "
            f"({len(changes)} files differ). Choose another --output, or give --overwrite to "
            "replace it"
        )


def check_files(manifest: Manifest, *, output: AnyPath) -> None:
    """Check that the files of a dataset exist and have their sizes.

    Raises:
        DamageError: One is missing or has another size.
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
    """Return the crc32c of each split of a file, cut as for the dataset."""
    size = file.bytes if len(entry.crc32c) == 1 else split_bytes
    return tuple(stored_crc32c(split, reading) for split in splits(file, reading, split_bytes=size))


def _times(output: AnyPath) -> dict[tuple[str, str], tuple[int, str]]:
    """Return mtime and etag of the files that the dataset was made of, where they are recorded."""
    path = output / INPUTS
    if not path.exists():
        return {}
    return {
        (file["source"], file["path"]): (file["mtime_ns"], file.get("etag", ""))
        for file in read_json(path)
    }


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
