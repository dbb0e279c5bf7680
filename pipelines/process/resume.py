"""Finds the items that earlier runs have finished, and the versions that have changed since."""

from collections.abc import Iterable, Mapping

from pipelines.execute.records import intact_files, read_record
from pipelines.process.processor import ProcessItem, ProcessRecord, SplitRecord
from pipelines.read.files import InputFile
from pipelines.read.formats import stored_crc32c
from pipelines.read.input_format import InputFormat
from pipelines.read.split import FileSplit
from shards.errors import DamageError
from shards.storage.remote import AnyPath


def is_usable(
    item: ProcessItem,
    record: ProcessRecord,
    folder: AnyPath,
    *,
    input_format: InputFormat | None,
    sizes: Mapping[str, int] | None = None,
    cut: bool = True,
) -> bool:
    """Return whether an earlier run finished an item whose input files have not changed since.

    A file whose modification time or etag is different is read again; if its bytes are the same
    (crc32c), the file has not changed. If `input_format` is None, only the name and size of the
    file count, which are part of the item's name. A failed split is processed again.

    Args:
        item: The item.
        record: The record of the item.
        folder: The folder of the item's files.
        input_format: The format of the input files; None to ignore changes of these files.
        sizes: The size of every file in the folder; None to query each file.
        cut: Whether the record may be used if the end of a file is missing.
    """
    if not all(
        not found.failure and (cut or not found.cut) and _of_this_file(found, split, input_format)
        for found, split in zip(record.splits, item.splits, strict=True)
    ):
        return False
    written = {
        f"{segment.stem}.{suffix}": entry
        for segment in record.segments
        for suffix, entry in segment.files.items()
    }
    return intact_files(((folder / name, entry) for name, entry in written.items()), sizes)


def _of_this_file(record: SplitRecord, split: FileSplit, input_format: InputFormat | None) -> bool:
    if input_format is None or unchanged(split, (record.mtime_ns, record.etag)):
        return True
    return record.crc32c == stored_crc32c(split)


def unchanged(file: FileSplit | InputFile, before: tuple[int, str] | None) -> bool:
    """Return whether a file's modification time and etag are as before, and not both unknown."""
    return (file.mtime_ns, file.etag) == before != (0, "")


def changed_versions(
    todo: Iterable[ProcessItem], versions: Mapping[str, str], records: Iterable[AnyPath]
) -> dict[str, int]:
    """Return, for each version that has changed, how many segments the old version made.

    Args:
        todo: The items that have to run again.
        versions: The current versions.
        records: The paths of all records that do not belong to items of this run.
    """
    unfinished = {_range(split) for item in todo for split in item.splits}
    changed: dict[str, int] = {}
    for path in records if unfinished else ():
        try:
            record = read_record(ProcessRecord, path)
        except DamageError:  # a different version wrote it in a different format
            continue
        of_these = any(_range(split) in unfinished for split in record.splits)
        if of_these and record.versions != versions:
            for name in sorted(versions):
                if record.versions.get(name) != versions[name]:
                    text = f"{name} ({record.versions.get(name)}, now {versions[name]})"
                    changed[text] = changed.get(text, 0) + len(record.segments)
    return changed


def _range(split: FileSplit | SplitRecord) -> tuple[str, str, int, int]:
    return split.source, split.relative, split.start, split.end
