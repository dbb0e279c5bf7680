"""Which tasks of the map earlier runs have finished, and which versions changed since."""

from collections.abc import Iterable, Mapping

from pipelines.execute.records import finished_record, intact_files, read_record
from pipelines.map.mapper import MapRecord, MapTask, SplitRecord
from pipelines.read.files import InputFile
from pipelines.read.input_format import InputFormat, stored_crc32c
from pipelines.read.split import FileSplit
from shards.errors import DamageError
from shards.storage.files import files
from shards.storage.remote import AnyPath


def is_usable(
    task: MapTask,
    folder: AnyPath,
    *,
    reading: InputFormat | None,
    sizes: Mapping[str, int] | None = None,
    cut: bool = True,
) -> bool:
    """Return whether an earlier run finished a task, on its files as they are now.

    A file with another time or etag is read again: if its bytes are the same (crc32c), it is a copy
    of the same file. Without a reading its name and size, which the task's name covers, suffice. A
    split that failed is tried again.

    Args:
        task: The task.
        folder: Where its record lies.
        reading: How its files are read; None if they are not to be looked at.
        sizes: The size of every file in the folder; None asks for each.
        cut: Whether it is of use where the end of a file is missing.
    """
    record = finished_record(MapRecord, folder / f"{task.name}.json")
    if record is None or not all(
        not found.failure and (cut or not found.cut) and _of_this_file(found, split, reading)
        for found, split in zip(record.splits, task.splits, strict=True)
    ):
        return False
    written = {
        f"{segment.stem}.{suffix}": entry
        for segment in record.segments
        for suffix, entry in segment.files.items()
    }
    return intact_files(((folder / name, entry) for name, entry in written.items()), sizes)


def _of_this_file(record: SplitRecord, split: FileSplit, reading: InputFormat | None) -> bool:
    if reading is None or unchanged(split, (record.mtime_ns, record.etag)):
        return True
    return record.crc32c == stored_crc32c(split)


def unchanged(file: FileSplit | InputFile, before: tuple[int, str] | None) -> bool:
    """Return whether a file still has this time and etag; False if it has neither."""
    return (file.mtime_ns, file.etag) == before != (0, "")


def changed_versions(
    todo: Iterable[MapTask],
    folder: AnyPath,
    versions: Mapping[str, str],
    *,
    all_tasks: Iterable[MapTask],
) -> dict[str, int]:
    """Return which versions changed since files were mapped, and how many segments that concerns.

    Args:
        todo: The tasks that are to be run again.
        folder: Where records lie.
        versions: The current versions.
        all_tasks: All tasks of the run: records of their names are of the current versions.
    """
    unfinished = {_range(split) for task in todo for split in task.splits}
    current = {f"{task.name}.json" for task in all_tasks}
    changed: dict[str, int] = {}
    for file in files(folder) if unfinished else ():
        if not file.endswith(".json") or file in current:
            continue
        try:
            record = read_record(MapRecord, folder / file)
        except DamageError:  # of a version with another form of record
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
