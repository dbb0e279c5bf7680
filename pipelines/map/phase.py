"""The driver's side of the map: the tasks of all files, those finished before and the rest."""

import itertools
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipelines.corpus.options import Options
from pipelines.corpus.part import MERGE
from pipelines.execute.phases import Phases
from pipelines.execute.records import finished_record, read_record
from pipelines.execute.workers import MOST_DEATHS
from pipelines.map.mapper import Job, MapRecord, MapTask, prepare_map, record_names
from pipelines.map.packs import packs
from pipelines.map.parts import describe_ranges, shares_for, tasks_of_part
from pipelines.map.resume import changed_versions, is_usable
from pipelines.read.files import InputFile, Listing
from pipelines.read.input_format import splits
from pipelines.read.split import FileSplit
from shards.errors import UserError
from shards.storage.files import file_names
from shards.storage.files import files as files_in
from shards.storage.remote import AnyPath
from shards.storage.sparse import side_by_side

_LOG = logging.getLogger("corpusmill")

Chains = Mapping[InputFile, Sequence[FileSplit]]
"""The splits of every file, in order."""


class MapPhase:
    """The map of a run: cuts its files into splits and maps those that are not mapped yet."""

    def __init__(
        self,
        job: Job,
        facts: Mapping[str, Any],
        *,
        files: Sequence[InputFile],
        phases: Phases,
        failed: dict[InputFile, str],
    ) -> None:
        """Make the phase.

        Args:
            job: What all tasks share.
            facts: Fingerprints in place of the options that are paths.
            files: What to read.
            phases: Runs the tasks.
            failed: What a watch leaves out comes in here, with the reason: files that cannot be
                mapped. Any other run ends by the first of them.
        """
        self._job = job
        self._facts = facts
        self._files = sorted(files, key=lambda file: file.name)
        self._phases = phases
        self._failed = failed
        self._names: set[str] = set()
        self._readings = {source: corpus.reading for source, corpus in job.corpora.items()}
        self._folder = job.work / "map"
        self._part = job.options.part
        self._merging = self._part == (MERGE,)

    def map_all(self) -> list[MapRecord]:
        """Map what is not mapped yet, and return the records of all tasks, by file and place.

        Raises:
            UserError: A file cannot be mapped, unless this is a watch; or, with --part merge, some
                splits have not been mapped by any part.
        """
        chains = self._chains(check=not self._merging)
        tasks = self._tasks(self._cut(chains))
        todo = self._unfinished(tasks)
        if todo and self._merging:
            raise self._incomplete(tasks, todo)
        records = self._map(tasks, todo)
        self._note_failed(records.values())
        left = {file.name for file in self._failed}
        found = [_without(records[task.name], left) for task in tasks]
        self._check_ends(found)
        return [record for record in found if record.splits]

    def map_part(self) -> None:
        """Map the tasks of the run's shares, and log what to do next."""
        chains = self._chains()
        all_tasks = self._tasks(self._cut(chains))
        tasks = tasks_of_part(all_tasks, self._part)
        own = {split.name for task in tasks for split in task.splits}
        self._check_heads([file for file in chains if file.name in own])
        records = self._map(tasks, self._unfinished(tasks, all_tasks=all_tasks))
        self._check_ends(records.values())
        names = file_names(self._folder)
        missing = [task for task in all_tasks if f"{task.name}.json" not in names]
        kept = sum(segment.documents for record in records.values() for segment in record.segments)
        _LOG.info(
            "part %s: %d of %d splits, %s documents, are mapped; %d splits are not in %s yet. When "
            "every part has ended: the same command with --part merge (of parts with an output of "
            "their own, copy what is in .work/map of each into one first)",
            ",".join(self._part),
            len(_splits_of(tasks)),
            len(_splits_of(all_tasks)),
            f"{kept:,}",
            len(_splits_of(missing)),
            self._job.options.output,
        )

    def forget(self) -> None:
        """Delete the records and segments of what was mapped; those of other files stay.

        What was mapped before in other packs goes, too.
        """
        files = {file.name for file in self._files}
        for name in file_names(self._folder):
            task, _, ending = name.partition(".")
            if ending == "json" and task not in self._names:
                record = finished_record(MapRecord, self._folder / name)
                if record and any(split.name in files for split in record.splits):
                    self._names.add(task)
        forget_records(self._folder, self._names)

    def _note_failed(self, records: Iterable[MapRecord]) -> None:
        """Note the files of which a split has failed."""
        why: dict[tuple[str, str], str] = {}
        for split in (split for record in records for split in record.splits):
            if split.failure:
                why.setdefault(split.name, split.failure)
        self._failed.update({file: why[file.name] for file in self._files if file.name in why})

    def _check_ends(self, records: Iterable[MapRecord]) -> None:
        """Check that the end of no file is missing, unless the run may continue without it.

        Raises:
            UserError: One is.
        """
        if self._job.options.skip_unreadable:
            return
        why = {
            split.name: split.why_cut for record in records for split in record.splits if split.cut
        }
        cut = {file: why[file.name] for file in self._files if file.name in why}
        Listing(files=[], refused=cut).check(
            ", or give --skip-unreadable to continue with the records that can be read (finished "
            "work is kept)"
        )

    def _check_heads(self, files: Sequence[InputFile]) -> None:
        for file in files:
            self._readings[file.source].peek(file.path).check()

    def _chains(self, *, check: bool = False) -> dict[InputFile, list[FileSplit]]:
        """Return the splits of each file; `check` its beginning as well."""
        chains = {}
        for file in self._files:
            try:
                self._check_heads([file] if check else ())
                chains[file] = self._splits_of(file)
            except UserError as error:
                if not self._job.options.watch:
                    raise
                self._failed[file] = str(error)
        return chains

    def _splits_of(self, file: InputFile) -> list[FileSplit]:
        reading = self._readings[file.source]
        return splits(file, reading, split_bytes=self._job.options.split_bytes)

    def _cut(self, chains: Chains) -> Iterable[tuple[FileSplit, ...]]:
        return packs(chains.values(), split_bytes=self._job.options.split_bytes)

    def _tasks(self, cut: Iterable[tuple[FileSplit, ...]]) -> list[MapTask]:
        return map_tasks(cut, self._job, self._facts)

    def _unfinished(
        self, tasks: Sequence[MapTask], *, all_tasks: Sequence[MapTask] = ()
    ) -> list[MapTask]:
        """Return the tasks that no earlier run finished; log if a changed version is the reason.

        Args:
            tasks: The tasks to check.
            all_tasks: All tasks of the run, if `tasks` are only some of them.
        """
        sizes = files_in(self._folder)  # behind a URL one listing instead of many requests

        def usable(task: MapTask) -> bool:
            record = self._folder / f"{task.name}.json"
            if record.name not in sizes:
                return False
            if is_usable(
                task,
                self._folder,
                # A merge does not look at the files: on its machine they may have other times.
                reading=None if self._merging else self._readings[task.source],
                sizes=sizes,
                cut=self._job.options.skip_unreadable or not self._job.options.watch,
            ):
                return True
            # Deleted at once: later another part may have written it again.
            if not self._merging:
                record.unlink(missing_ok=True)
            return False

        finished = side_by_side(usable, tasks, where=self._folder)
        todo = [task for task, done in zip(tasks, finished, strict=True) if not done]
        changed = changed_versions(
            todo, self._folder, self._job.versions, all_tasks=all_tasks or tasks
        )
        for text, segments in changed.items():
            effect = "cannot be used" if self._merging else "are made again"
            _LOG.info("%s changed: %d segments %s", text, segments, effect)
        return todo

    def _map(self, tasks: Sequence[MapTask], todo: Sequence[MapTask]) -> dict[str, MapRecord]:
        """Return the records of tasks by name, after running those tasks that are `todo`."""
        self._names |= {task.name for task in tasks}
        self._phases.run(
            "map",
            todo,
            prepare_map,
            self._job,
            weights=[task.size for task in todo],
            done=len(tasks) - len(todo),
        )
        records = side_by_side(
            lambda task: read_record(MapRecord, self._folder / f"{task.name}.json"),
            tasks,
            where=self._folder,
        )
        return {task.name: record for task, record in zip(tasks, records, strict=True)}

    def _incomplete(self, tasks: Sequence[MapTask], todo: Sequence[MapTask]) -> UserError:
        missing = _splits_of(todo)
        unusable = sum((self._folder / f"{task.name}.json").exists() for task in todo)
        return UserError(
            f"{len(missing)} of {len(_splits_of(tasks))} splits are not mapped in "
            f"{self._folder}: {describe_ranges(missing)}. Run the same command with --part "
            f"{shares_for(tasks, todo)}, or run the parts that did not finish again (what they "
            "finished is kept). If their files are on other machines, copy those of .work/map "
            "here. Then give --part merge again"
            + (
                f" ({unusable} of them have a record that cannot be used: it is damaged)"
                if unusable
                else ""
            )
        )


def map_tasks(
    cut: Iterable[tuple[FileSplit, ...]], job: Job, facts: Mapping[str, Any]
) -> list[MapTask]:
    """Return the tasks of a job.

    Args:
        cut: The splits that each task maps, by source.
        job: What all tasks share.
        facts: Fingerprints in place of the options that are paths.
    """
    tasks = []
    for source, group in itertools.groupby(cut, key=lambda splits: splits[0].source):
        own = [*group]
        names = record_names(own, job.corpora[source], versions=job.versions, facts=facts)
        tasks += [
            MapTask(name=name, splits=splits, most_deaths=_most_deaths(splits, job.options))
            for name, splits in zip(names, own, strict=True)
        ]
    return tasks


def _most_deaths(splits: Sequence[FileSplit], options: Options) -> int:
    """Return how many workers may die of a task: in a watch at each file, which it leaves out."""
    return MOST_DEATHS * (1 + len(splits)) if options.watch else MOST_DEATHS


def _splits_of(tasks: Iterable[MapTask]) -> list[FileSplit]:
    return [split for task in tasks for split in task.splits]


def _without(record: MapRecord, left_out: Collection[tuple[str, str]]) -> MapRecord:
    """Return a record without the splits of some files, of which it has no segment but theirs."""
    splits = tuple(split for split in record.splits if split.name not in left_out)
    return record if len(splits) == len(record.splits) else replace(record, splits=splits)


def forget_records(folder: AnyPath, names: Collection[str]) -> None:
    """Delete the records and segments of the tasks of these names in the folder of the map."""
    for name in file_names(folder):
        if name.partition(".")[0].partition("-")[0] in names:
            (folder / name).unlink(missing_ok=True)
