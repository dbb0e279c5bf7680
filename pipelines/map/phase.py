"""The driver's side of the map: the splits of all files, those mapped before and the rest."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pipelines.corpus.part import MERGE
from pipelines.engine.phases import Phases
from pipelines.engine.records import read_record
from pipelines.engine.workers import MOST_DEATHS
from pipelines.inputs.files import InputFile, Listing
from pipelines.inputs.split import Split, seamless
from pipelines.map.mapper import Job, MapTask, SplitRecord, prepare_map, record_name
from pipelines.map.parts import describe_ranges, shares_for, splits_of_part
from pipelines.map.resume import changed_versions, is_usable
from pipelines.readers.reading import check_head, splits
from shards.errors import UserError
from shards.storage.files import file_names
from shards.storage.files import files as files_in
from shards.storage.remote import AnyPath
from shards.storage.sparse import side_by_side

_LOG = logging.getLogger("corpusmill")


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
        self._files = files
        self._phases = phases
        self._failed = failed
        self._names: set[str] = set()
        self._readings = {source: corpus.reading for source, corpus in job.corpora.items()}
        self._folder = job.work / "map"
        self._part = job.options.part
        self._merging = self._part == (MERGE,)

    def map_all(self) -> list[SplitRecord]:
        """Map what is not mapped yet, and return the records of all splits, by file and place.

        Raises:
            UserError: A file cannot be mapped, unless this is a watch; or, with --part merge, some
                splits have not been mapped by any part.
        """
        chains = self._chains(check=not self._merging)
        tasks = self._tasks([split for chain in chains.values() for split in chain])
        todo = self._unfinished(tasks)
        if todo and self._merging:
            raise self._incomplete(chains, todo)
        records = self._map(tasks, todo)
        self._leave_out_failed(chains, records)
        for file, chain in chains.items():
            links = [records[split].link for split in chain]
            if not seamless(links):
                _LOG.info(
                    "%s: its splits do not join up, because nested arrays look like records: it is "
                    "mapped again, read as one split",
                    file.relative,
                )
                chains[file] = self._splits_of(file, split_bytes=file.bytes)
        redone = self._tasks([chain[0] for chain in chains.values() if chain[0] not in records])
        records |= self._map(redone, self._unfinished(redone)) if redone else {}
        self._leave_out_failed(chains, records)
        self._check_ends(chains, records)
        return [records[split] for chain in chains.values() for split in chain]

    def map_part(self) -> None:
        """Map the splits of the run's shares, and log what to do next."""
        chains = self._chains()
        own = {*splits_of_part(chains, self._part)}
        self._check_heads([file for file, chain in chains.items() if not own.isdisjoint(chain)])
        all_tasks = self._tasks([split for chain in chains.values() for split in chain])
        tasks = [task for task in all_tasks if task.split in own]
        records = self._map(tasks, self._unfinished(tasks, all_tasks=all_tasks))
        own_chains = {file: [*own.intersection(chain)] for file, chain in chains.items()}
        self._check_ends(own_chains, records)
        names = file_names(self._folder)
        missing = sum(f"{task.name}.json" not in names for task in all_tasks)
        kept = sum(segment.documents for record in records.values() for segment in record.segments)
        _LOG.info(
            "part %s: %d of %d splits, %s documents, are mapped; %d splits are not in %s yet. When "
            "every part has ended: the same command with --part merge (of parts with an output of "
            "their own, copy what is in .work/map of each into one first)",
            ",".join(self._part),
            len(tasks),
            len(all_tasks),
            f"{kept:,}",
            missing,
            self._job.options.output,
        )

    def forget(self) -> None:
        """Delete the records and segments of what was mapped; those of other files stay."""
        forget_records(self._folder, self._names)

    def _leave_out_failed(
        self, chains: dict[InputFile, list[Split]], records: Mapping[Split, SplitRecord]
    ) -> None:
        """Move files of which a split has failed out of the chains."""
        for file, chain in [*chains.items()]:
            why = next((found.failure for split in chain if (found := records[split]).failure), "")
            if self._job.options.watch and not self._job.options.skip_unreadable:
                why = why or _why_cut(chain, records)
            if why:
                self._failed[file] = why
                del chains[file]

    def _check_ends(
        self, chains: Mapping[InputFile, Iterable[Split]], records: Mapping[Split, SplitRecord]
    ) -> None:
        """Check that the end of no file is missing, unless the run may continue without it.

        Raises:
            UserError: One is.
        """
        if self._job.options.skip_unreadable:
            return
        cut = {file: why for file, chain in chains.items() if (why := _why_cut(chain, records))}
        Listing(files=[], refused=cut).check(
            ", or give --skip-unreadable to continue with the records that can be read (finished "
            "work is kept)"
        )

    def _check_heads(self, files: Sequence[InputFile]) -> None:
        for file in files:
            check_head(file, self._readings[file.source])

    def _chains(self, *, check: bool = False) -> dict[InputFile, list[Split]]:
        """Return the splits of each file; `check` its beginning as well."""
        size = self._job.options.split_bytes
        chains = {}
        for file in self._files:
            try:
                self._check_heads([file] if check else ())
                chains[file] = self._splits_of(file, split_bytes=size)
            except UserError as error:
                if not self._job.options.watch:
                    raise
                self._failed[file] = str(error)
        return chains

    def _splits_of(self, file: InputFile, *, split_bytes: int) -> list[Split]:
        return splits(file, self._readings[file.source], split_bytes=split_bytes)

    def _tasks(self, splits: Sequence[Split]) -> list[MapTask]:
        return map_tasks(splits, self._job, self._facts)

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
                reading=None if self._merging else self._readings[task.split.source],
                sizes=sizes,
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

    def _map(self, tasks: Sequence[MapTask], todo: Sequence[MapTask]) -> dict[Split, SplitRecord]:
        """Return the records of tasks by split, after running those tasks that are `todo`."""
        self._names |= {task.name for task in tasks}
        self._phases.run(
            "map",
            todo,
            prepare_map,
            self._job,
            weights=[task.split.end - task.split.start for task in todo],
            done=len(tasks) - len(todo),
        )
        records = side_by_side(
            lambda task: read_record(SplitRecord, self._folder / f"{task.name}.json"),
            tasks,
            where=self._folder,
        )
        return {task.split: record for task, record in zip(tasks, records, strict=True)}

    def _incomplete(
        self, chains: Mapping[InputFile, Sequence[Split]], todo: Sequence[MapTask]
    ) -> UserError:
        missing = [task.split for task in todo]
        unusable = sum((self._folder / f"{task.name}.json").exists() for task in todo)
        return UserError(
            f"{len(missing)} of {sum(map(len, chains.values()))} splits are not mapped in "
            f"{self._folder}: {describe_ranges(missing)}. Run the same command with --part "
            f"{shares_for(chains, missing)}, or run the parts that did not finish again (what they "
            "finished is kept). If their files are on other machines, copy those of .work/map "
            "here. Then give --part merge again"
            + (
                f" ({unusable} of them have a record that cannot be used: it is damaged)"
                if unusable
                else ""
            )
        )


def _why_cut(chain: Iterable[Split], records: Mapping[Split, SplitRecord]) -> str:
    """Return why an unknown number of records of a file is missing; "" if none is."""
    return next((why for split in chain if (why := records[split].why_cut)), "")


def map_tasks(splits: Iterable[Split], job: Job, facts: Mapping[str, Any]) -> list[MapTask]:
    """Return the tasks of splits.

    Args:
        splits: Of the files of the job.
        job: What all tasks share.
        facts: Fingerprints in place of the options that are paths.
    """
    most_deaths = MOST_DEATHS
    if job.options.watch:  # the attempt after those deaths names the file, and the rest goes on
        most_deaths += MOST_DEATHS
    return [
        MapTask(
            name=record_name(split, job.corpora[split.source], versions=job.versions, facts=facts),
            split=split,
            most_deaths=most_deaths,
        )
        for split in splits
    ]


def forget_records(folder: AnyPath, names: Collection[str]) -> None:
    """Delete the records and segments of the tasks of these names in the folder of the map."""
    for name in file_names(folder):
        if name.partition(".")[0].partition("-")[0] in names:
            (folder / name).unlink(missing_ok=True)
