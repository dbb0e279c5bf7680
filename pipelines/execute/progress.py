"""Shows the progress of a run from the records of finished items, wherever the items ran."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from pipelines.execute.counters import progress_counts
from pipelines.execute.job_store import JobStore
from shards.commands.progress import Display, progress_line
from shards.errors import UserError
from shards.storage.files import list_file_names, read_json
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")

PAUSE_FACTOR = 20
"""The pause between two polls is at least this many times as long as the last poll took."""

_POLL_SECONDS = 0.3
"""The minimum number of seconds between two polls of a job on an engine."""


class StageProgress:
    """Shows the progress of a stage while its block runs.

    Args:
        stage: The name of the stage.
        items: The weight (bytes of input, or 1) of each item, by the path of its record.
        stream: The stream for the line; by default a notebook's cell or the standard error.
    """

    def __init__(
        self, stage: str, items: Mapping[AnyPath, int], *, stream: TextIO | None = None
    ) -> None:
        self._stage = stage
        self._waiting = dict(items)
        self._total = max(1, sum(items.values()))
        self._display = Display(stream)
        self._done = 0
        self._counts: Counter[str] = Counter()
        self._started = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "StageProgress":
        if self._display.is_notebook:
            self._poll()  # this thread runs the cell, so the bar appears in this cell
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._poll(last=True)

    def _watch(self) -> None:
        pause = self._display.seconds
        while not self._stop.wait(pause):
            started = time.monotonic()
            self._poll()
            # For a URL, polling millions of files takes minutes, and each page of a listing costs
            # money.
            pause = max(pause, PAUSE_FACTOR * (time.monotonic() - started))

    def _poll(self, *, last: bool = False) -> None:
        # Storage that does not answer, or a closed terminal, must not fail the run.
        with suppress(UserError, OSError):
            line = self.line()
            self._display.show(line, percent=100 * self._done / self._total, last=last)

    @property
    def is_done(self) -> bool:
        """Whether the last poll found every record."""
        return not self._waiting

    def line(self) -> str:
        """Return the current progress line."""
        for path in self._finished():
            self._done += self._waiting.pop(path)
            self._counts.update(progress_counts(self._stage, read_json(path)))
        return progress_line(
            self._stage,
            self._done,
            self._total,
            seconds=time.monotonic() - self._started,
            counts=[f"{count:,} {name}" for name, count in self._counts.items()],
            unit="MB" if self._total > len(self._waiting) + 1e6 else "",  # the weights are bytes
        )

    def _finished(self) -> list[AnyPath]:
        first = next(iter(self._waiting), None)  # all are in one folder, so one listing finds them
        names = list_file_names(first.parent) if first else ()
        return [path for path in self._waiting if path.name in names]


@contextmanager
def show_progress(store: JobStore, stages: Sequence[str]) -> Iterator[None]:
    """Show the progress of a job on an engine, and log the messages of its plans, during the block.

    Args:
        store: The shared values of the job.
        stages: The names of the job's stages, in order.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_show_stages, args=(store, stages, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _show_stages(store: JobStore, stages: Sequence[str], stop: threading.Event) -> None:
    for stage in stages:
        planned = _planned(store, stage, stop)
        if planned is None:
            return
        for level, message in planned.messages:
            _LOG.log(level, "%s", message)
        if planned.finished:
            log_finished(stage, planned.finished, len(planned.weights))
        folder = store.work / stage
        items = {folder / f"{name}.json": weight for name, weight in planned.weights.items()}
        if items:
            with StageProgress(stage, items) as progress:
                while not (progress.is_done or stop.wait(_POLL_SECONDS)):
                    pass


def _planned(store: JobStore, stage: str, stop: threading.Event) -> Any:
    """Wait until a stage is planned and return its summary; None if the job ends first."""
    pause = _POLL_SECONDS
    while True:
        is_last = stop.is_set()
        started = time.monotonic()
        with suppress(UserError, OSError):  # if the storage does not answer, the job itself fails
            if (planned := store.get(stage)) is not None:
                return planned
        if is_last:
            return None
        pause = max(_POLL_SECONDS, PAUSE_FACTOR * (time.monotonic() - started))
        stop.wait(pause)


def log_finished(stage: str, finished: int, items: int) -> None:
    """Log the number of a stage's items that earlier jobs have finished."""
    _LOG.info("%s: %d of %d items were finished before", stage, finished, items)
