"""What an earlier run left: finished splits to use again, or a dataset that is there already."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pipelines.inputs.sources import InputFile, Split
from pipelines.map.attempts import forget
from pipelines.map.mapper import MapTask, SplitRecord
from pipelines.readers.reading import Reading, splits, stored_crc32c
from shards.errors import DamageError, UserError
from shards.manifest import WORK, InputEntry, Manifest, ShardEntry, TableEntry
from shards.records import unsealed
from shards.storage.files import TEMPORARY, FileEntry, files, intact, read_json, size_if_there
from shards.storage.remote import AnyPath, RemotePath

_LOG = logging.getLogger("corpusmill")
RecordType = TypeVar("RecordType")

INPUTS = "inputs.json"
"""What a dataset was made of, with times: about the run, no part of the dataset."""


def read_record(kind: type[RecordType], path: AnyPath) -> RecordType:
    """Return the record that a finished task left.

    Raises:
        DamageError: There is none, or it is not one.
    """
    try:
        return unsealed(kind, read_json(path), where=str(path))
    except ValueError as error:
        raise DamageError(f"{error}: delete this file and run the command again") from error


def finished(kind: type[RecordType], path: AnyPath) -> RecordType | None:
    """Return the record of a task if the task is finished; what was changed counts as none."""
    if not path.exists():
        return None
    try:
        return read_record(kind, path)
    except DamageError:
        _LOG.warning("%s was changed, or another version wrote it: its task is done again", path)
        return None


def usable(
    task: MapTask,
    folder: AnyPath,
    *,
    reading: Reading | None,
    skip_poison: bool = False,
    there: Mapping[str, int] | None = None,
) -> bool:
    """Return whether an earlier run finished the split, on the file as it is now.

    A file with another time or etag is read once more: the same bytes (crc32c) are the same file,
    copied. Without a reading its name and size, which the task's name covers, are enough. A split
    with poison left out is finished for runs that do so too.

    Args:
        task: The split's task.
        folder: Where its record lies.
        reading: How the file is read; None: it is not looked at.
        skip_poison: Whether this run leaves poison out.
        there: The sizes of all files in the folder, if it is behind a URL: else each is asked for.
    """
    if there is not None and f"{task.name}.json" not in there:
        return False
    record = finished(SplitRecord, folder / f"{task.name}.json")
    if record is None or not _of_this_file(record, task.split, reading):
        return False
    if record.poison and not skip_poison:
        return False
    written = {
        f"{segment.stem}.{suffix}": entry
        for segment in record.segments
        for suffix, entry in segment.files.items()
    }
    if there is not None:
        return all(there.get(name) == entry.bytes for name, entry in written.items())
    return _intact((folder / name, entry) for name, entry in written.items())


def _of_this_file(record: SplitRecord, split: Split, reading: Reading | None) -> bool:
    if reading is None or _unchanged(split, (record.mtime_ns, record.etag)):
        return True
    return record.crc32c == stored_crc32c(split, reading)


def _unchanged(file: Split | InputFile, before: tuple[int, str] | None) -> bool:
    """Return whether a file has the time and etag that it had; False if it has neither."""
    return (file.mtime_ns, file.etag) == before != (0, "")


def changed_versions(
    todo: Iterable[MapTask],
    folder: AnyPath,
    versions: Mapping[str, str],
    *,
    known: Iterable[MapTask],
) -> dict[str, int]:
    """Return which versions changed since splits were mapped, and how many segments are theirs.

    Args:
        todo: The tasks of these splits, which are to be mapped again.
        folder: Where records lie.
        versions: The versions of now.
        known: All tasks of the run: their records are of now.
    """
    unfinished = {_range(task.split) for task in todo}
    skipped = {f"{task.name}.json" for task in known}
    changed: dict[str, int] = {}
    for file in files(folder) if unfinished else ():
        if not file.endswith(".json") or file in skipped:
            continue
        try:
            record = read_record(SplitRecord, folder / file)
        except DamageError:  # of a version whose records looked otherwise
            continue
        if _range(record) in unfinished and record.versions != versions:
            for name in sorted(versions):
                if record.versions.get(name) != versions[name]:
                    text = f"{name} ({record.versions.get(name)}, now {versions[name]})"
                    changed[text] = changed.get(text, 0) + len(record.segments)
    return changed


def _range(split: Split | SplitRecord) -> tuple[str, str, int, int]:
    return split.source, split.relative, split.start, split.end


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
    odd = [
        f"--{name.replace('_', '-')} is {_shown(options.get(name))}, "
        f"the dataset has {_shown(manifest.options.get(name))}"
        for name in sorted({*options, *manifest.options})
        if options.get(name) != manifest.options.get(name)
    ]
    if odd:
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
            _unchanged(have[key], versions.get(key))
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


def complete_files(output: AnyPath, entries: Iterable[ShardEntry | TableEntry]) -> bool:
    """Return whether files below `output` are there as they were written; they are read."""
    written: list[tuple[AnyPath, FileEntry]] = []
    for entry in entries:
        if isinstance(entry, TableEntry):
            found = FileEntry(bytes=entry.bytes, crc32c=entry.crc32c)
            written.append((output / entry.path, found))
        else:
            written += [(output / f"{entry.path}.{s}", f) for s, f in entry.files.items()]
    return _intact(written)


def _intact(files: Iterable[tuple[AnyPath, FileEntry]]) -> bool:
    for path, entry in files:
        if not intact(path, entry):
            _LOG.warning("%s is missing or was changed after it was written: made again", path)
            return False
    return True
