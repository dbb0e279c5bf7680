"""Which splits an earlier run mapped already, and which versions changed since."""

from collections.abc import Iterable, Mapping

from pipelines.engine.records import finished, intact_files, read_record
from pipelines.inputs.files import InputFile
from pipelines.inputs.split import Split
from pipelines.map.mapper import MapTask, SplitRecord
from pipelines.readers.reading import Reading, stored_crc32c
from shards.errors import DamageError
from shards.storage.files import files
from shards.storage.remote import AnyPath


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
    return intact_files((folder / name, entry) for name, entry in written.items())


def _of_this_file(record: SplitRecord, split: Split, reading: Reading | None) -> bool:
    if reading is None or unchanged(split, (record.mtime_ns, record.etag)):
        return True
    return record.crc32c == stored_crc32c(split, reading)


def unchanged(file: Split | InputFile, before: tuple[int, str] | None) -> bool:
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
