"""Runs jobs on an engine, or on this machine with or without worker processes."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pipelines.execute.flags import engine_name
from pipelines.execute.item import run_packed
from pipelines.execute.workers import Workers

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")


class Runner:
    """Runs jobs on an engine or this machine; as a context manager, ends the workers it started."""

    def __init__(
        self, flags: Sequence[str], *, num_workers: int, preload: Sequence[str] = ()
    ) -> None:
        """Create a runner.

        Args:
            flags: Beam's flags.
            num_workers: The number of worker processes on this machine; 0 runs items in this
                process.
            preload: Modules that the items need; they are imported once for all workers.

        Raises:
            UserError: The engine does not answer.
        """
        self.local = not engine_name(flags)
        """Whether the items run on this machine."""
        self.flags = [*flags] if self.local else with_engine_flags(flags)
        self.num_workers = num_workers if self.local else 0
        self._workers = Workers(self.num_workers, run_packed, preload)

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *details: object) -> None:
        self._workers.__exit__(*details)

    def call_in_worker(
        self, function: Callable[[_Argument], _Result], argument: _Argument
    ) -> _Result:
        """Return function(argument), called on this machine in a process that also runs items.

        The process is a worker if there are workers, otherwise this process. So items reuse the
        models that the function loads, and run with the library versions that it checks.

        Args:
            function: A function of a module, not a nested one.
            argument: The argument; argument and result must be picklable.

        Raises:
            UserError: The function raised it, or its worker died.
        """
        return self._workers.call(function, argument) if self.num_workers else function(argument)

    def run(self, items: Sequence[Any], payload: bytes) -> None:
        """Run all items on this machine, and return when all are done.

        Args:
            items: Small picklable dataclasses.
            payload: The result of `packed`.

        Raises:
            UserError: An item failed in a way that the user can fix, or its worker kept dying.
        """
        if self.num_workers:
            self._workers.run_all(items, payload)
        else:
            for item in items:
                run_packed(payload, item)


def check_engine(flags: Sequence[str]) -> None:
    """Check that the engine answers, if the flags name one.

    Raises:
        UserError: The engine does not answer.
    """
    if engine_name(flags):
        from pipelines.execute import cluster  # noqa: PLC0415  loads Beam

        cluster.check_engine_answers(flags)


def with_engine_flags(flags: Sequence[str]) -> list[str]:
    """Return the flags for an engine, plus the flags that its workers need.

    Raises:
        UserError: The engine does not answer.
    """
    from pipelines.execute import cluster, loopback  # noqa: PLC0415  load Beam

    check_engine(flags)
    return loopback.with_loopback_workers(cluster.with_defaults(flags), runner=engine_name(flags))


def silence_beam() -> None:
    """Keep Beam's log off the terminal; this package reports each item's error once."""
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    for handler in logging.root.handlers:
        handler.addFilter(_is_for_people)


@contextmanager
def preserve_log_level() -> Iterator[None]:
    """Restore the level of Beam's log after the block, because a run silences the log.

    If no log is configured, Python's handler of last resort is used in the block, because Beam
    would configure a log in its own format.
    """
    log = logging.getLogger("apache_beam")
    level, unset = log.level, not logging.root.handlers
    if unset and logging.lastResort:
        logging.root.addHandler(logging.lastResort)
    try:
        yield
    finally:
        log.setLevel(level)
        if unset and logging.lastResort:
            logging.root.removeHandler(logging.lastResort)


def _is_for_people(record: logging.LogRecord) -> bool:
    """Return whether a message comes neither from a job, as Beam repeats it, nor from Prism.

    The errors of jobs and of Prism are reported as the error of the job.
    """
    return record.module != "portable_runner" and record.name != "PrismRunner"
