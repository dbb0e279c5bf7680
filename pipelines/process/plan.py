"""Plans the items of ProcessSplits, which consist of the splits of all files."""

import itertools
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipelines.corpus.options import Options
from pipelines.corpus.part import MERGE
from pipelines.execute.records import finished_record
from pipelines.execute.workers import MAX_DEATHS
from pipelines.process.parts import describe_ranges, items_of_part, shares_for
from pipelines.process.processor import Job, ProcessItem, ProcessRecord, record_names
from pipelines.process.resume import changed_versions, is_usable
from pipelines.read.files import InputFile
from pipelines.read.formats import splits
from pipelines.read.listing import Listing
from pipelines.read.packs import packs
from pipelines.read.peek import Peek
from pipelines.read.split import FileSplit
from shards.errors import UserError
from shards.storage.files import list_file_names
from shards.storage.remote import AnyPath
from shards.storage.sparse import concurrent_map

_LOG = logging.getLogger("corpusmill")


@dataclass(frozen=True, kw_only=True)
class ProcessPlan:
    """The items that a job processes."""

    items: Sequence[ProcessItem]
    """The items, by file and position."""
    others: Sequence[ProcessItem] = ()
    """The items that other parts process."""
    failed: Mapping[InputFile, str] = field(default_factory=dict)
    """The files that a watch cannot split, with the reasons."""


def plan_splits(
    job: Job,
    fingerprints: Mapping[str, Any],
    inputs: Sequence[InputFile],
    *,
    there: Collection[str],
) -> ProcessPlan:
    """Return the items that a job processes, which consist of splits of its input files.

    Args:
        job: The values that all items share.
        fingerprints: The fingerprints that replace the values of options that name paths.
        inputs: The files.
        there: The names of all files in the folder .work/map.

    Raises:
        UserError: A file cannot be split, and the job is not a watch.
    """
    part = job.options.part
    is_share = bool(part) and part != (MERGE,)
    splits_by_file: list[list[FileSplit]] = []
    failed: dict[InputFile, str] = {}
    for file in sorted(inputs, key=lambda file: file.name):
        input_format = job.corpora[file.source].input_format
        try:
            if not part:
                Peek(file.path, input_format).check()
            splits_by_file.append(splits(file, input_format, split_bytes=job.options.split_bytes))
        except UserError as error:
            if not job.options.watch:
                raise
            failed[file] = str(error)
    items = split_items(
        packs(splits_by_file, split_bytes=job.options.split_bytes), job, fingerprints
    )
    own = items_of_part(items, part) if is_share else items
    if is_share:
        names = {split.name for item in own for split in item.splits}
        for file in inputs:
            if file.name in names:
                Peek(file.path, job.corpora[file.source].input_format).check()
    chosen = {item.name for item in own}
    others = [item for item in items if item.name not in chosen] if is_share else []
    _log_changes(own, items, job, there)
    return ProcessPlan(items=own, others=others, failed=failed)


def split_items(
    cut: Iterable[tuple[FileSplit, ...]], job: Job, fingerprints: Mapping[str, Any]
) -> list[ProcessItem]:
    """Return the items of a job.

    Args:
        cut: The splits of each item, by source.
        job: The values that all items share.
        fingerprints: The fingerprints that replace the values of options that name paths.
    """
    items = []
    for source, group in itertools.groupby(cut, key=lambda splits: splits[0].source):
        own = [*group]
        names = record_names(
            own, job.corpora[source], versions=job.versions, fingerprints=fingerprints
        )
        items += [
            ProcessItem(name=name, splits=splits, max_deaths=_max_deaths(splits, job.options))
            for name, splits in zip(names, own, strict=True)
        ]
    return items


def is_intact(
    job: Job, item: ProcessItem, record: ProcessRecord, sizes: Mapping[str, int] | None
) -> bool:
    """Return whether an earlier job finished an item whose files have not changed since."""
    merges = job.options.part == (MERGE,)
    return is_usable(
        item,
        record,
        job.work / "map",
        # A merge ignores the input files, whose modification times may differ on its machine.
        input_format=None if merges else job.corpora[item.source].input_format,
        sizes=sizes,
        cut=job.options.skip_unreadable or not job.options.watch,
    )


def check_parts(job: Job, items: Sequence[ProcessItem], sizes: Mapping[str, int]) -> None:
    """Check that the parts of a run have processed all items.

    Args:
        job: The values that all items share.
        items: All items.
        sizes: The sizes of all files in the folder .work/map.

    Raises:
        UserError: Items are missing; the message says which parts have to run.
    """
    folder = job.work / "map"

    def is_mapped(item: ProcessItem) -> bool:
        if f"{item.name}.json" not in sizes:
            return False
        record = finished_record(ProcessRecord, folder / f"{item.name}.json")
        return record is not None and is_intact(job, item, record, sizes)

    mapped = concurrent_map(is_mapped, items, where=folder)
    todo = [item for item, done in zip(items, mapped, strict=True) if not done]
    if not todo:
        return
    missing = splits_of(todo)
    unusable = sum(f"{item.name}.json" in sizes for item in todo)
    raise UserError(
        f"{len(missing)} of {len(splits_of(items))} splits are not mapped in {folder}: "
        f"{describe_ranges(missing)}. Run the same command with --part {shares_for(items, todo)}, "
        "or run the parts that did not finish again (what they finished is kept). If their files "
        "are on other machines, copy those of .work/map here. Then give --part merge again"
        + (
            f" ({unusable} of them have a record that cannot be used: it is damaged)"
            if unusable
            else ""
        )
    )


def log_part(job: Job, plan: ProcessPlan, records: Iterable[ProcessRecord]) -> None:
    """Log what a part has processed, and what to do next."""
    names = list_file_names(job.work / "map")
    everything = [*plan.items, *plan.others]
    missing = [item for item in everything if f"{item.name}.json" not in names]
    kept = sum(segment.documents for record in records for segment in record.segments)
    _LOG.info(
        "part %s: %d of %d splits, %s documents, are mapped; %d splits are not in %s yet. When "
        "every part has ended: the same command with --part merge (if each part has a "
        "separate output, first copy .work/map of each into one)",
        ",".join(job.options.part),
        len(splits_of(plan.items)),
        len(splits_of(everything)),
        f"{kept:,}",
        len(splits_of(missing)),
        job.options.output,
    )


def failed_files(
    records: Iterable[ProcessRecord], inputs: Iterable[InputFile]
) -> dict[InputFile, str]:
    """Return the files that have a failed split, with the reason of the failure."""
    why: dict[tuple[str, str], str] = {}
    for split in (split for record in records for split in record.splits):
        if split.failure:
            why.setdefault(split.name, split.failure)
    return {file: why[file.name] for file in inputs if file.name in why}


def without_files(
    records: Iterable[ProcessRecord], left_out: Collection[tuple[str, str]]
) -> list[ProcessRecord]:
    """Return records from which the splits of some files, which have no segments, are removed."""
    found = []
    for record in records:
        kept = tuple(split for split in record.splits if split.name not in left_out)
        if kept:
            found.append(replace(record, splits=kept))
    return found


def check_ends(records: Iterable[ProcessRecord], inputs: Iterable[InputFile]) -> None:
    """Check that no file is cut off.

    Raises:
        UserError: The end of a file is missing.
    """
    why = {split.name: split.why_cut for record in records for split in record.splits if split.cut}
    cut = {file: why[file.name] for file in inputs if file.name in why}
    Listing(files=[], refused=cut).check(
        ", or give --skip-unreadable to continue with the records that can be read (finished work "
        "is kept)"
    )


def splits_of(items: Iterable[ProcessItem]) -> list[FileSplit]:
    """Return the splits of items."""
    return [split for item in items for split in item.splits]


def forget_mapped(folder: AnyPath, inputs: Iterable[InputFile], names: Iterable[str]) -> None:
    """Delete the records and segments of files that a generation contains.

    Args:
        folder: The folder .work/map.
        inputs: The files.
        names: The names of the files' items. Records and segments of these files in earlier items,
            which had different packs, are deleted too.
    """
    of_files, chosen = {file.name for file in inputs}, {*names}
    there = list_file_names(folder)
    for name in there:
        item, _, ending = name.partition(".")
        if ending == "json" and item not in chosen:
            record = finished_record(ProcessRecord, folder / name)
            if record and any(split.name in of_files for split in record.splits):
                chosen.add(item)
    for name in there:
        if name.partition(".")[0].partition("-")[0] in chosen:
            (folder / name).unlink(missing_ok=True)


def _log_changes(
    items: Sequence[ProcessItem],
    everything: Sequence[ProcessItem],
    job: Job,
    there: Collection[str],
) -> None:
    """Log which versions have changed since an earlier job processed these items."""
    todo = [item for item in items if f"{item.name}.json" not in there]
    current = {f"{item.name}.json" for item in everything}
    others = [name for name in there if name.endswith(".json") and name not in current]
    changed = changed_versions(todo, job.versions, [job.work / "map" / name for name in others])
    for text, segments in changed.items():
        effect = "cannot be used" if job.options.part == (MERGE,) else "are made again"
        _LOG.info("%s changed: %d segments %s", text, segments, effect)


def _max_deaths(splits: Sequence[FileSplit], options: Options) -> int:
    """Return how many workers an item may kill; more in a watch, which retries file by file."""
    return MAX_DEATHS * (1 + len(splits)) if options.watch else MAX_DEATHS
