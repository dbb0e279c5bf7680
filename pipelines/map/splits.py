"""The driver's side of the map: the splits of all files, those mapped before and the rest."""

import logging
from collections.abc import Mapping, Sequence
from itertools import compress
from operator import not_
from typing import Any

from pipelines.corpus.part import MERGE
from pipelines.engine.phases import Phases
from pipelines.engine.records import read_record
from pipelines.engine.workers import MOST_DEATHS, LostTask
from pipelines.inputs.files import InputFile
from pipelines.inputs.split import Split, seamless
from pipelines.map import resume
from pipelines.map.attempts import MOST_POISON, advice
from pipelines.map.mapper import Job, MapTask, SplitRecord, prepare_map, record_name
from pipelines.map.parts import chosen, ranges, shares_for
from pipelines.readers.reading import check_head, splits
from pipelines.segments.sparse import side_by_side
from shards.errors import UserError
from shards.storage.files import files as files_in
from shards.storage.remote import RemotePath

_LOG = logging.getLogger("corpusmill")


class Splits:
    """The splits of a run."""

    def __init__(
        self,
        job: Job,
        facts: Mapping[str, Any],
        *,
        files: Sequence[InputFile],
        phases: Phases,
    ) -> None:
        """Make them.

        Args:
            job: What every task is told.
            facts: What stands for options that are paths.
            files: What to read.
            phases: Runs the tasks.
        """
        self._job = job
        self._facts = facts
        self._files = files
        self._phases = phases
        self._readings = {source: each.reading for source, each in job.corpora.items()}
        self._folder = job.work / "map"
        self._merging = job.options.part == (MERGE,)

    def records(self) -> list[SplitRecord]:
        """Return the records of all splits, by file and place, after mapping what is not mapped.

        Raises:
            UserError: The parts of the run were to map them and did not.
        """
        if not self._merging:
            self._check_heads(self._files)
        chains = self._chains()
        tasks = self._tasks([split for chain in chains.values() for split in chain])
        todo = self._unfinished(tasks)
        if todo and self._merging:
            raise self._incomplete(chains, todo)
        records = self._mapped(tasks, todo)
        for file, chain in chains.items():
            links = [records[split].link for split in chain]
            if not seamless(links):
                _LOG.info("%s: nested arrays look like records; read as one", file.relative)
                chains[file] = self._cut(file, split_bytes=file.bytes)
        redone = self._tasks([chain[0] for chain in chains.values() if chain[0] not in records])
        records |= self._mapped(redone, self._unfinished(redone)) if redone else {}
        return [records[split] for chain in chains.values() for split in chain]

    def map_part(self) -> None:
        """Map the splits of the run's shares, and say what is to be done next."""
        part, chains = self._job.options.part, self._chains()
        mine = {*chosen(chains, part)}
        self._check_heads([file for file, chain in chains.items() if not mine.isdisjoint(chain)])
        every = self._tasks([split for chain in chains.values() for split in chain])
        tasks = [task for task in every if task.split in mine]
        records = self._mapped(tasks, self._unfinished(tasks, known=every))
        there = files_in(self._folder)
        missing = sum(f"{task.name}.json" not in there for task in every)
        kept = sum(segment.documents for each in records.values() for segment in each.segments)
        _LOG.info(
            "part %s: %d of %d splits, %s documents, are mapped; %d splits are not in %s yet. When "
            "every part has ended: the same command with --part merge (of parts with an output of "
            "their own, copy what is in .work/map of each into one first)",
            ",".join(part),
            len(tasks),
            len(every),
            f"{kept:,}",
            missing,
            self._job.options.output,
        )

    def _check_heads(self, files: Sequence[InputFile]) -> None:
        for file in files:
            check_head(file, self._readings[file.source])

    def _chains(self) -> dict[InputFile, list[Split]]:
        size = self._job.options.split_bytes
        return {file: self._cut(file, split_bytes=size) for file in self._files}

    def _cut(self, file: InputFile, *, split_bytes: int) -> list[Split]:
        return splits(file, self._readings[file.source], split_bytes=split_bytes)

    def _tasks(self, splits: Sequence[Split]) -> list[MapTask]:
        # Two to four deaths tell a record.
        more = (MOST_DEATHS + 1) * MOST_POISON if self._job.options.skip_poison else 0
        return [
            MapTask(
                name=record_name(split, self._job, self._facts),
                split=split,
                most_deaths=MOST_DEATHS + more,
            )
            for split in splits
        ]

    def _unfinished(
        self, tasks: Sequence[MapTask], *, known: Sequence[MapTask] = ()
    ) -> list[MapTask]:
        """Return the tasks that no earlier run finished; say where a version is why.

        Args:
            tasks: What is to be done.
            known: All tasks of the run, if these are not all of them.
        """
        # Behind a URL one listing instead of requests for each split.
        there = files_in(self._folder) if isinstance(self._folder, RemotePath) else None

        def usable(task: MapTask) -> bool:
            record = self._folder / f"{task.name}.json"
            if (record.name not in there) if there is not None else not record.exists():
                return False
            found = resume.usable(
                task,
                self._folder,
                # Machines have other times for the same file.
                reading=None if self._merging else self._readings[task.split.source],
                skip_poison=self._job.options.skip_poison,
                there=there,
            )
            # Deleted as soon as it is refused: later another part may have written it anew.
            if not (found or self._merging):
                record.unlink(missing_ok=True)
            return found

        todo = list(compress(tasks, map(not_, side_by_side(usable, tasks, where=self._folder))))
        changed = resume.changed_versions(
            todo, self._folder, self._job.versions, known=known or tasks
        )
        for text, segments in changed.items():
            again = "cannot be used" if self._merging else "are made again"
            _LOG.info("%s changed: %d segments %s", text, segments, again)
        return todo

    def _mapped(
        self, tasks: Sequence[MapTask], todo: Sequence[MapTask]
    ) -> dict[Split, SplitRecord]:
        """Return the records of tasks by split, after doing those of them that are to be done."""
        try:
            self._phases.run(
                "map",
                todo,
                prepare_map,
                self._job,
                weights=[task.split.end - task.split.start for task in todo],
                done=len(tasks) - len(todo),
            )
        except LostTask as lost:
            told = advice(self._job.work, lost.task.name, run=self._job.run)
            raise UserError(f"{lost}.{told}" if told else str(lost)) from lost
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
        left_out = sum((self._folder / f"{task.name}.json").exists() for task in todo)
        return UserError(
            f"{len(missing)} of {sum(map(len, chains.values()))} splits are not mapped in "
            f"{self._folder}: {ranges(missing)}. Run the same command with --part "
            f"{shares_for(chains, missing)}, or repeat those of the parts that did not end (what "
            "they finished is kept), copy the files of .work/map here if they lie elsewhere, and "
            "give --part merge again"
            + (
                f" ({left_out} of them have a record that does not serve: damaged, or made with "
                "--skip-poison, which then merge needs as well)"
                if left_out
                else ""
            )
        )
