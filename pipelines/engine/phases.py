"""A phase of a run: the tasks that no earlier run finished are done, then all records read."""

import logging
import time
from collections.abc import Callable, Sequence
from itertools import compress
from operator import not_
from typing import Any, TypeVar

from pipelines.engine.progress import Progress, progress_counts
from pipelines.engine.records import finished, read_record
from pipelines.engine.runner import Runner, Work
from pipelines.segments.sparse import forget_sizes, side_by_side
from shards.storage.files import files
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")
RecordType = TypeVar("RecordType")


class Phases:
    """Runs the phases of one run; the record of a task is <work>/<phase>/<task.name>.json."""

    def __init__(self, work: AnyPath, runner: Runner) -> None:
        self.seconds: dict[str, float] = {}
        """How long each phase worked."""
        self.tasks: dict[str, dict[str, int]] = {}
        """How many tasks each phase has, and how many of them were finished before."""
        self._started = time.monotonic()
        self._work = work
        self._runner = runner

    def finish(
        self,
        phase: str,
        tasks: Sequence[Any],
        prepare: Callable[[Any], Work],
        argument: Any,
        *,
        kind: type[RecordType],
        complete: Callable[[RecordType], bool],
    ) -> dict[str, RecordType]:
        """Return the records of tasks by name, after running those that are not finished.

        Args:
            phase: Its name.
            tasks: All tasks of the phase.
            prepare: Makes, of `argument`, the function that does a task.
            argument: What every task is told.
            kind: The type of a record.
            complete: Whether the files that a record names are there.
        """
        folder = self._work / phase

        there = files(folder)  # behind a URL one listing instead of a request a task

        def done(task: Any) -> bool:
            if f"{task.name}.json" not in there:
                return False
            record = finished(kind, folder / f"{task.name}.json")
            if record is not None and complete(record):
                return True
            (folder / f"{task.name}.json").unlink(missing_ok=True)
            return False

        todo = list(compress(tasks, map(not_, side_by_side(done, tasks, where=folder))))
        self.run(
            phase, todo, prepare, argument, weights=[1] * len(todo), done=len(tasks) - len(todo)
        )
        names = [task.name for task in tasks]
        records = side_by_side(
            lambda name: read_record(kind, folder / f"{name}.json"), names, where=folder
        )
        return dict(zip(names, records, strict=True))

    def run(
        self,
        phase: str,
        todo: Sequence[Any],
        prepare: Callable[[Any], Work],
        argument: Any,
        *,
        weights: Sequence[int],
        done: int,
    ) -> None:
        """Run tasks, showing how far they are.

        Args:
            phase: Its name.
            todo: The tasks; none of them has a record.
            prepare: Makes, of `argument`, the function that does a task.
            argument: What every task is told.
            weights: Share of each task in the whole: bytes of input, or 1.
            done: How many more tasks were finished before.
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
        progress = Progress(
            phase,
            dict(zip(paths, weights, strict=True)),
            describe=progress_counts,
            work=self._work,
        )
        with progress:
            told = (self._work / phase, prepare, argument)
            self._runner.run(todo, prepare_unfinished, told)
        self.seconds[phase] = self.seconds.get(phase, 0) + time.monotonic() - started

    def figures(self) -> dict[str, Any]:
        """Return what report.json says of the phases: seconds, also in all so far, and tasks."""
        return {
            "seconds": {name: round(value, 1) for name, value in self.seconds.items()},
            "elapsed": round(time.monotonic() - self._started, 1),
            "tasks": self.tasks,
        }


def prepare_unfinished(told: tuple[AnyPath, Callable[[Any], Work], Any]) -> Work:
    """Return the function that does a task unless its record is there.

    No task has one when its phase begins, so it is from an earlier attempt in the same phase: an
    engine that loses a machine hands out all the tasks of a job again.

    Args:
        told: The folder of the phase's records, what makes the function that does a task, and what
            that is told.
    """
    folder, prepare, argument = told
    forget_sizes()
    work = prepare(argument)

    def do(task: Any) -> None:
        if not (folder / f"{task.name}.json").exists():
            work(task)

    return do
