"""Runs the tasks of a phase where the flags say: in this process, in workers of it, on an engine.

Only engines, and --runner=DirectRunner without workers, need Beam; it is loaded there.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pipelines.execute.flags import engine_name
from pipelines.execute.task import RunTask, packed, run_packed
from pipelines.execute.workers import Workers

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


class Runner:
    """Runs tasks where the flags say. As a context manager it ends the workers it started."""

    def __init__(
        self,
        flags: Sequence[str],
        *,
        num_workers: int,
        preload: Sequence[str] = (),
        dataset: str = "",
    ) -> None:
        """Make a runner.

        Args:
            flags: Beam's own; with none, or with workers, tasks do not go through Beam.
            num_workers: Worker processes on this machine; 0 runs the tasks in this process.
            preload: Modules that the tasks need; all workers share one import of them.
            dataset: The name of the dataset that is made, for the names of an engine's jobs.

        Raises:
            UserError: The engine does not answer.
        """
        self.local = not engine_name(flags)
        """Whether the tasks run on this machine."""
        self._flags = [*flags] if self.local else ready_for_engine(flags)
        self._dataset = dataset
        self.num_workers = num_workers if self.local else 0
        self._workers = Workers(self.num_workers, run_packed, preload)

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *details: object) -> None:
        self._workers.__exit__(*details)

    def call(self, function: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
        """Return function(argument), called on this machine in a process that also runs tasks.

        It is a worker if there are any, otherwise this process. So what the function loads and
        keeps, and what it finds out about libraries, serves the tasks as well.

        Args:
            function: A function of a module.
            argument: Picklable, and so is what the function returns.

        Raises:
            UserError: The function raised it, or its worker died.
        """
        return self._workers.call(function, argument) if self.num_workers else function(argument)

    def run(
        self,
        tasks: Sequence[Any],
        prepare: Callable[[Any], RunTask],
        argument: Any,
        *,
        phase: str = "tasks",
    ) -> None:
        """Run all tasks and return when they are done.

        Args:
            tasks: Small picklable records.
            prepare: A module-level function; prepare(argument) returns the one that runs a task.
            argument: Picklable.
            phase: What the tasks are, for an engine's pages.

        Raises:
            UserError: A task failed in a way that the user can fix, or its worker kept dying.
        """
        payload = packed(prepare, argument)
        if self.num_workers:
            self._workers.run_all(tasks, payload)
        elif self._flags:
            from pipelines.execute.pipeline import Phase, run_pipeline  # noqa: PLC0415  loads Beam

            about = Phase(phase, dataset=self._dataset)
            run_pipeline(self._flags, tasks, payload, phase=about, in_process=self.local)
        else:
            for task in tasks:
                run_packed(payload, task)


def check_engine(flags: Sequence[str]) -> None:
    """Check that the engine which the flags name, if any, answers.

    Raises:
        UserError: It does not.
    """
    if engine_name(flags):
        from pipelines.execute import cluster  # noqa: PLC0415  loads Beam

        cluster.check_engine_answers(flags)


def ready_for_engine(flags: Sequence[str]) -> list[str]:
    """Return the flags for an engine, with those added that workers on it need.

    Raises:
        UserError: The engine does not answer.
    """
    from pipelines.execute import cluster, loopback  # noqa: PLC0415  load Beam

    check_engine(flags)
    return loopback.with_own_workers(cluster.with_processes(flags), runner=engine_name(flags))


def silence_beam() -> None:
    """Keep Beam's own log off the terminal; this package reports a task's error once."""
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    for handler in logging.root.handlers:
        handler.addFilter(_is_for_people)


@contextmanager
def level_kept() -> Iterator[None]:
    """Give Beam's log back the level that its user chose; a run silences it."""
    log = logging.getLogger("apache_beam")
    level = log.level
    try:
        yield
    finally:
        log.setLevel(level)


def _is_for_people(record: logging.LogRecord) -> bool:
    """Return whether a message is not a job's, which Beam passes on under no name, or Prism's."""
    of_prism = record.name == "PrismRunner" and record.levelno < logging.WARNING
    return record.module != "portable_runner" and not of_prism
