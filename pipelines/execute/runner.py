"""Where a job runs: on an engine, or on this machine with or without worker processes."""

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
    """Where a job runs. As a context manager it ends the workers that it started."""

    def __init__(
        self, flags: Sequence[str], *, num_workers: int, preload: Sequence[str] = ()
    ) -> None:
        """Make a runner.

        Args:
            flags: Beam's own.
            num_workers: Worker processes on this machine; 0 does the items in this process.
            preload: Modules that the items need; all workers share one import of them.

        Raises:
            UserError: The engine does not answer.
        """
        self.local = not engine_name(flags)
        """Whether the items are done on this machine."""
        self.flags = [*flags] if self.local else ready_for_engine(flags)
        self.num_workers = num_workers if self.local else 0
        self._workers = Workers(self.num_workers, run_packed, preload)

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *details: object) -> None:
        self._workers.__exit__(*details)

    def call(self, function: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
        """Return function(argument), called on this machine in a process that also runs items.

        It is a worker if there are any, otherwise this process. So what the function loads and
        keeps, and what it finds out about libraries, serves the items as well.

        Args:
            function: A function of a module.
            argument: Picklable, and so is what the function returns.

        Raises:
            UserError: The function raised it, or its worker died.
        """
        return self._workers.call(function, argument) if self.num_workers else function(argument)

    def run(self, items: Sequence[Any], payload: bytes) -> None:
        """Do all items on this machine, and return when they are done.

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
    return loopback.with_own_workers(cluster.with_defaults(flags), runner=engine_name(flags))


def silence_beam() -> None:
    """Keep Beam's own log off the terminal; this package reports an item's error once."""
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    for handler in logging.root.handlers:
        handler.addFilter(_is_for_people)


@contextmanager
def level_kept() -> Iterator[None]:
    """Give Beam's log back the level that its user chose; a run silences it.

    Where no log is set up, Beam would set one up in its own form.
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
    """Return whether a message is not a job's, which Beam passes on under no name, or Prism's.

    Their errors come back as the error of the job.
    """
    return record.module != "portable_runner" and record.name != "PrismRunner"
