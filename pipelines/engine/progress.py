"""Progress of a run: a line that changes on a terminal, a bar in a notebook, plain lines elsewhere.

Finished tasks are known by their records, wherever they ran.
"""

import importlib
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from typing import Any, TextIO

from pipelines.engine.figures import progress_counts
from shards.errors import UserError
from shards.shown import message, tell
from shards.storage.files import file_names, read_json
from shards.storage.remote import AnyPath

PLAIN_SECONDS = 10.0

PAUSE_FACTOR = 20
"""The pause between two looks is at least this many times as long as the last look took."""


class Progress:
    """Shows a phase while its block runs.

    Args:
        phase: Its name.
        tasks: Weight (bytes of input, or 1) of each task, by the path of its record.
        stream: Where the line goes; by default a notebook's cell or the standard error.
    """

    def __init__(
        self, phase: str, tasks: Mapping[AnyPath, int], *, stream: TextIO | None = None
    ) -> None:
        self._phase = phase
        self._waiting = dict(tasks)
        self._total = max(1, sum(tasks.values()))
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._bar = NotebookBar() if stream is None and in_notebook() else None
        self._done = self._percent = 0
        self._counts: Counter[str] = Counter()
        self._started = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Progress":
        if self._bar:
            self._look()  # from the thread that runs the cell, which the bar then belongs to
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look(end="\n")

    def _watch(self) -> None:
        pause = 1.0 if self._terminal or self._bar else PLAIN_SECONDS
        while not self._stop.wait(pause):
            started = time.monotonic()
            self._look()
            # Behind a URL a look at millions of files takes minutes, and each page costs money.
            pause = max(pause, PAUSE_FACTOR * (time.monotonic() - started))

    def _look(self, *, end: str = "") -> None:
        # No reason to fail: the storage does not answer, or nobody reads the line any more.
        with suppress(UserError, OSError):
            line = self.line()
            if self._bar:
                self._bar.show(line, percent=self._percent)
            elif self._terminal:
                tell(line, stream=self._stream, start="\r\033[K", end=end)
            else:
                tell(line, stream=self._stream)

    def line(self) -> str:
        """Return the line for this moment."""
        for path in self._finished():
            self._done += self._waiting.pop(path)
            self._counts.update(progress_counts(self._phase, read_json(path)))
        seconds = max(time.monotonic() - self._started, 1e-3)
        self._percent = 100 * self._done // self._total
        parts = [f"{self._phase} {self._percent:3.0f} %"]
        parts += [f"{count:,} {name}" for name, count in self._counts.items()]
        if self._total > len(self._waiting) + 1e6:  # the weights are bytes
            parts.append(f"{self._done / 1e6 / seconds:.1f} MB/s")
        if 0 < self._done < self._total:
            left = seconds * (self._total - self._done) / self._done
            parts.append(f"ETA {_duration(left)}")
        else:
            parts.append(_duration(seconds))
        return " | ".join(parts)

    def _finished(self) -> list[AnyPath]:
        first = next(iter(self._waiting), None)  # all are of one folder: one listing shows them
        names = file_names(first.parent) if first else ()
        return [path for path in self._waiting if path.name in names]


class NotebookBar:
    """A bar with a line beside it, in the output of the cell that runs."""

    def __init__(self) -> None:
        self._show = importlib.import_module("IPython.display").display
        self._handle: Any = None

    def show(self, line: str, *, percent: int) -> None:
        """Show a line of progress, and how much is done."""
        text = message(line)
        bar = f'<progress value="{percent}" max="100"></progress> <code>{escape(text)}</code>'
        shown = {"text/plain": text, "text/html": bar}
        if self._handle is None:
            self._handle = self._show(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
