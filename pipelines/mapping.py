"""The driver's side of the map: the splits of all files, those mapped before and the rest."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines import resume
from pipelines.inputs.sources import InputFile, Split, seamless
from pipelines.mapper import Job, MapTask, SplitRecord, prepare_map, record_name
from pipelines.phases import Phases
from pipelines.readers.reading import splits

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

    def records(self) -> list[SplitRecord]:
        """Return the records of all splits, by file and place, after mapping what is not mapped."""
        size = self._job.options.split_bytes
        chains = {file: self._cut(file, split_bytes=size) for file in self._files}
        records = self._mapped([split for chain in chains.values() for split in chain])
        for file, chain in chains.items():
            links = [records[split].link for split in chain]
            if not seamless(links):
                _LOG.info("%s: nested arrays look like records; read as one", file.relative)
                chains[file] = self._cut(file, split_bytes=file.bytes)
        redone = [chain[0] for chain in chains.values() if chain[0] not in records]
        records |= self._mapped(redone) if redone else {}
        return [records[split] for chain in chains.values() for split in chain]

    def _cut(self, file: InputFile, *, split_bytes: int) -> list[Split]:
        return splits(file, self._readings[file.source], split_bytes=split_bytes)

    def _mapped(self, splits: Sequence[Split]) -> dict[Split, SplitRecord]:
        tasks = [
            MapTask(name=record_name(split, self._job, self._facts), split=split)
            for split in splits
        ]
        todo = [
            task
            for task in tasks
            if not resume.usable(task, self._folder, reading=self._readings[task.split.source])
        ]
        resume.explain_versions(todo, self._folder, self._job.versions)
        for task in todo:
            (self._folder / f"{task.name}.json").unlink(missing_ok=True)
        self._phases.run(
            "map",
            todo,
            prepare_map,
            self._job,
            weights=[task.split.end - task.split.start for task in todo],
            done=len(tasks) - len(todo),
        )
        return {
            task.split: resume.read_record(SplitRecord, self._folder / f"{task.name}.json")
            for task in tasks
        }
