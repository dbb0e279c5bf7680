"""Shows the progress of a run from the records of finished items, wherever the items ran."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from pipelines.execute.figures import progress_counts
from pipelines.execute.notes import Notes
from shards.commands.progress import Display, progress_line
from shards.errors import UserError
from shards.storage.files import list_file_names, read_json
from shards.storage.remote import AnyPath

_LOG = logging.getLogger("corpusmill")

PAUSE_FACTOR = 20
"""The pause between two polls is at least this many times as long as the last poll took."""

_LOOK_SECONDS = 0.3
"""Seconds between two polls of the notes of a job's plans on an engine."""


class StageProgress:
    """Shows a stage while its block runs.

    Args:
        stage: Its name.
        items: The weight (bytes of input, or 1) of each item, by the path of its record.
        stream: The stream for the line; by default a notebook's cell or the standard error.
    """

    def __init__(
        self, stage: str, items: Mapping[AnyPath, int], *, stream: TextIO | None = None
    ) -> None:
        self._phase = stage
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
            self._look()  # in the thread that runs the cell, so that the bar belongs to this cell
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look(last=True)

    def _watch(self) -> None:
        pause = self._display.seconds
        while not self._stop.wait(pause):
            started = time.monotonic()
            self._look()
            # For a URL, polling millions of files takes minutes, and each page of a listing costs
            # money.
            pause = max(pause, PAUSE_FACTOR * (time.monotonic() - started))

    def _look(self, *, last: bool = False) -> None:
        # Storage that does not answer, or a closed terminal, is no reason to fail.
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
            self._counts.update(progress_counts(self._phase, read_json(path)))
        return progress_line(
            self._phase,
            self._done,
            self._total,
            seconds=time.monotonic() - self._started,
            counts=[f"{count:,} {name}" for name, count in self._counts.items()],
            unit="MB" if self._total > len(self._waiting) + 1e6 else "",  # the weights are bytes
        )

    def _finished(self) -> list[AnyPath]:
        first = next(iter(self._waiting), None)  # one listing finds them, as all are in one folder
        names = list_file_names(first.parent) if first else ()
        return [path for path in self._waiting if path.name in names]


@contextmanager
def follow(notes: Notes, stages: Sequence[str]) -> Iterator[None]:
    """Show the progress of a job on an engine, and the log of its plans, while the block runs.

    Args:
        notes: The notes of the job.
        stages: The names of the job's stages, in order.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_follow, args=(notes, stages, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _follow(notes: Notes, stages: Sequence[str], stop: threading.Event) -> None:
    for stage in stages:
        planned = _planned(notes, stage, stop)
        if planned is None:
            return
        for level, message in planned.messages:
            _LOG.log(level, "%s", message)
        if planned.finished:
            log_finished(stage, planned.finished, len(planned.weights))
        folder = notes.work / stage
        items = {folder / f"{name}.json": weight for name, weight in planned.weights.items()}
        if items:
            with StageProgress(stage, items) as progress:
                while not (progress.is_done or stop.wait(_LOOK_SECONDS)):
                    pass


def _planned(notes: Notes, stage: str, stop: threading.Event) -> Any:
    """Wait for the note of a stage's plan and return the note; None if the job ends first."""
    pause = _LOOK_SECONDS
    while True:
        is_last = stop.is_set()
        started = time.monotonic()
        with suppress(UserError, OSError):  # if the storage does not answer, the job itself fails
            if (planned := notes.get(stage)) is not None:
                return planned
        if is_last:
            return None
        pause = max(_LOOK_SECONDS, PAUSE_FACTOR * (time.monotonic() - started))
        stop.wait(pause)


def log_finished(stage: str, finished: int, items: int) -> None:
    """Log the number of a stage's items that earlier jobs have finished."""
    _LOG.info("%s: %d of %d items were finished before", stage, finished, items)
