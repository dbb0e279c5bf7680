"""Reads records of finished items, and checks the files that they name."""

import logging
from collections.abc import Iterable, Mapping
from typing import TypeVar

from shards.errors import DamageError
from shards.manifest import ShardEntry, TableEntry
from shards.records import unseal
from shards.storage.files import FileEntry, is_intact, read_json
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")
RecordType = TypeVar("RecordType")


def read_record(record_type: type[RecordType], path: AnyPath) -> RecordType:
    """Return the record of a finished item.

    Raises:
        DamageError: The file is missing, or is not a record of this type.
    """
    try:
        return unseal(record_type, read_json(path), where=str(path))
    except ValueError as error:
        raise DamageError(f"{error}: delete this file and run the command again") from error


def finished_record(record_type: type[RecordType], path: AnyPath) -> RecordType | None:
    """Return the record of an item; None if the record is missing or was changed."""
    if not path.exists():
        return None
    try:
        return read_record(record_type, path)
    except DamageError:
        _LOG.warning("%s was changed, or another version wrote it: its item runs again", path)
        return None


def complete_files(output: AnyPath, entries: Iterable[ShardEntry | TableEntry]) -> bool:
    """Read files below `output`, and return whether their contents match their checksums."""
    written: list[tuple[AnyPath, FileEntry]] = []
    for entry in entries:
        if isinstance(entry, TableEntry):
            table = FileEntry(bytes=entry.bytes, crc32c=entry.crc32c)
            written.append((output / entry.path, table))
        else:
            written += [
                (output / f"{entry.path}.{suffix}", file) for suffix, file in entry.files.items()
            ]
    return intact_files(written)


def intact_files(
    files: Iterable[tuple[AnyPath, FileEntry]], sizes: Mapping[str, int] | None = None
) -> bool:
    """Return whether files are unchanged since they were written; the first changed file is logged.

    Args:
        files: The paths and entries of the files.
        sizes: As in `is_intact`.
    """
    for path, entry in files:
        if not is_intact(path, entry, sizes):
            _LOG.warning(
                "%s is missing or was changed after it was written: it is made again", path
            )
            return False
    return True
