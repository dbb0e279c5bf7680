"""Records of finished tasks, and whether the files they name are intact."""

import logging
from collections.abc import Iterable
from typing import TypeVar

from shards.errors import DamageError
from shards.manifest import ShardEntry, TableEntry
from shards.records import unsealed
from shards.storage.files import FileEntry, intact, read_json
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")
RecordType = TypeVar("RecordType")


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


def complete_files(output: AnyPath, entries: Iterable[ShardEntry | TableEntry]) -> bool:
    """Return whether files below `output` are there as they were written; they are read."""
    written: list[tuple[AnyPath, FileEntry]] = []
    for entry in entries:
        if isinstance(entry, TableEntry):
            found = FileEntry(bytes=entry.bytes, crc32c=entry.crc32c)
            written.append((output / entry.path, found))
        else:
            written += [(output / f"{entry.path}.{s}", f) for s, f in entry.files.items()]
    return intact_files(written)


def intact_files(files: Iterable[tuple[AnyPath, FileEntry]]) -> bool:
    """Return whether files are as they were written; the first one that is not is logged."""
    for path, entry in files:
        if not intact(path, entry):
            _LOG.warning("%s is missing or was changed after it was written: made again", path)
            return False
    return True
