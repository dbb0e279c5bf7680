"""A phase of a run: tasks that no earlier run finished are run, then all records are read."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from pipelines.execute.progress import Progress
from pipelines.execute.records import RecordType, finished_record, read_record
from pipelines.execute.runner import Runner
from pipelines.execute.task import RunTask
from shards.storage.files import files
from shards.storage.remote import AnyPath
from shards.storage.sparse import forget_sizes, side_by_side

_LOG = logging.getLogger("corpusmill")


class Phases:
    """Runs the phases of one run; the record of a task is <work>/<phase>/<task.name>.json."""

    def __init__(self, work: AnyPath, runner: Runner, *, stream: TextIO | None = None) -> None:
        """Prepare them.

        Args:
            work: The folder of the run's intermediate files.
            runner: Runs the tasks.
            stream: Where the progress goes; the standard error by default.
        """
        self.seconds: dict[str, float] = {}
        """How long each phase ran."""
        self.tasks: dict[str, dict[str, int]] = {}
        """How many tasks each phase has, and how many of them earlier runs had finished."""
        self._started = time.monotonic()
        self._work = work
        self._runner = runner
        self._stream = stream

    def finish(
        self,
        phase: str,
        tasks: Sequence[Any],
        prepare: Callable[[Any], RunTask],
        argument: Any,
        *,
        record_type: type[RecordType],
        complete: Callable[[RecordType], bool],
    ) -> dict[str, RecordType]:
        """Return the records of tasks by name, after running the tasks that are not finished.

        Args:
            phase: Its name.
            tasks: All tasks of the phase.
            prepare: prepare(argument) returns the function that runs a task.
            argument: The same for all tasks.
            record_type: The class of a record.
            complete: Whether the files that a record names are there.
        """
        folder = self._work / phase
        names_in_folder = files(folder)  # behind a URL one listing instead of a request per task

        def is_finished(task: Any) -> bool:
            if f"{task.name}.json" not in names_in_folder:
                return False
            record = finished_record(record_type, folder / f"{task.name}.json")
            if record is not None and complete(record):
                return True
            (folder / f"{task.name}.json").unlink(missing_ok=True)
            return False

        done = side_by_side(is_finished, tasks, where=folder)
        todo = [task for task, finished in zip(tasks, done, strict=True) if not finished]
        self.run(
            phase, todo, prepare, argument, weights=[1] * len(todo), done=len(tasks) - len(todo)
        )
        names = [task.name for task in tasks]
        records = side_by_side(
            lambda name: read_record(record_type, folder / f"{name}.json"), names, where=folder
        )
        return dict(zip(names, records, strict=True))

    def run(
        self,
        phase: str,
        todo: Sequence[Any],
        prepare: Callable[[Any], RunTask],
        argument: Any,
        *,
        weights: Sequence[int],
        done: int,
    ) -> None:
        """Run tasks, showing progress.

        Args:
            phase: Its name.
            todo: The tasks; none of them has a record.
            prepare: prepare(argument) returns the function that runs a task.
            argument: The same for all tasks.
            weights: How much each task counts in the progress: bytes of input, or 1.
            done: How many other tasks earlier runs had finished.
        """
        counts = self.tasks.setdefault(phase, {"all": 0, "finished_before": 0})
        counts["all"] += len(todo) + done
        counts["finished_before"] += done
        if done:
            _LOG.info("%s: %d of %d tasks were finished before", phase, done, done + len(todo))
        if not todo:
            return
        started = time.monotonic()
        paths = [self._work / phase / f"{task.name}.json" for task in todo]
        tasks = dict(zip(paths, weights, strict=True))
        with Progress(phase, tasks, stream=self._stream):
            self._runner.run(
                todo, prepare_unfinished, (self._work / phase, prepare, argument), phase=phase
            )
        self.seconds[phase] = self.seconds.get(phase, 0) + time.monotonic() - started

    def figures(self) -> dict[str, Any]:
        """Return the phases' part of report.json: seconds by phase and in total, and tasks."""
        return {
            "seconds": {name: round(value, 1) for name, value in self.seconds.items()},
            "elapsed": round(time.monotonic() - self._started, 1),
            "tasks": self.tasks,
        }


def prepare_unfinished(arguments: tuple[AnyPath, Callable[[Any], RunTask], Any]) -> RunTask:
    """Return the function that runs a task unless its record is there, and returns its path.

    No task has a record when its phase begins, so a record is from an earlier attempt in the same
    phase: an engine that loses a machine hands out all tasks of a job again.

    Args:
        arguments: The folder of the phase's records, and `prepare` and `argument` of Phases.run.
    """
    folder, prepare, argument = arguments
    forget_sizes()
    run_task = prepare(argument)

    def run_unfinished(task: Any) -> AnyPath:
        record = folder / f"{task.name}.json"
        if not record.exists():
            run_task(task)
        return record

    return run_unfinished
