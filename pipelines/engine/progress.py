"""Progress of a run: a line that changes on a terminal, a bar in a notebook, plain lines elsewhere.

Finished tasks are known by their records. For tasks under way each local worker keeps a small file
with its task and the bytes done; on a cluster, whose workers have other disks, only records count.
"""

import importlib
import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any, TextIO

from pipelines.segments.rows import KEPT
from shards.errors import UserError
from shards.shown import message, tell
from shards.storage.files import read_json
from shards.storage.remote import AnyPath, RemotePath

PLAIN_SECONDS = 10.0

PAUSE_FACTOR = 20
"""The pause between two looks is at least this many times as long as the last look took."""


class Heartbeat:
    """A worker's reports of how far its current task is."""

    def __init__(self, work: AnyPath) -> None:
        folder = work / "progress"
        # Behind a URL these reports would cost more than they are worth.
        self._path = folder / f"{uuid.uuid4().hex}.json" if isinstance(folder, Path) else None
        self._task = ""
        self._rows = 0
        self._due = 0.0

    def beat(self, task: str, done_bytes: int, *, rows: int, about: str = "") -> None:
        """Report how far the task is; written about once a second.

        A report that cannot be written is skipped: progress is no reason to fail.

        Args:
            task: Its name.
            done_bytes: Bytes of its input that are done.
            rows: Documents since the last report.
            about: The task in words, for who looks at the file.
        """
        self._rows = rows + (self._rows if task == self._task else 0)
        self._task = task
        if self._path is None or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + 1
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            state = {"task": task, "about": about, "bytes": done_bytes, "rows": self._rows}
            temporary = self._path.with_suffix(".tmp")
            temporary.write_text(f"{json.dumps(state)}\n")
            temporary.replace(self._path)


class Progress:
    """Shows a phase while its block runs.

    Args:
        phase: Its name.
        tasks: Weight (bytes of input, or 1) of each task, by the path of its record.
        describe: Returns what the record of a finished task adds to the line: counts by name.
        work: The run's folder of intermediate files.
        stream: Where the line goes; by default a notebook's cell or the standard error.
    """

    def __init__(
        self,
        phase: str,
        tasks: Mapping[AnyPath, int],
        *,
        describe: Callable[[Any], Mapping[str, int]],
        work: AnyPath,
        stream: TextIO | None = None,
    ) -> None:
        self._phase = phase
        self._waiting = dict(tasks)
        self._total = max(1, sum(tasks.values()))
        self._describe = describe
        self._heartbeats = work / "progress"
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._bar = NotebookBar() if stream is None and in_notebook() else None
        self._done = self._percent = 0
        self._counts: dict[str, int] = {}
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
        self._look(last=True)

    def _watch(self) -> None:
        local = isinstance(self._heartbeats, Path)
        pause = 1.0 if (self._terminal or self._bar) and local else PLAIN_SECONDS
        while not self._stop.wait(pause):
            started = time.monotonic()
            self._look()
            # Behind a URL a look at millions of files takes minutes, and each page costs money.
            pause = max(pause, PAUSE_FACTOR * (time.monotonic() - started))

    def _look(self, *, last: bool = False) -> None:
        # No reason to fail: the storage does not answer, or nobody reads the line any more.
        with suppress(UserError, OSError):
            self._show(last=last)

    def _show(self, *, last: bool = False) -> None:
        line = self.line()
        if self._bar:
            self._bar.show(line, percent=self._percent)
        elif self._terminal:
            tell(line, stream=self._stream, start="\r\033[K", end="\n" if last else "")
        else:
            tell(line, stream=self._stream)

    def line(self) -> str:
        """Return the line for this moment."""
        self._collect()
        done, rows = self._under_way()
        done += self._done
        counts = dict(self._counts)
        if rows:
            counts["documents"] = counts.get("documents", 0) + rows
        seconds = max(time.monotonic() - self._started, 1e-3)
        self._percent = 100 * done // self._total
        parts = [f"{self._phase} {self._percent:3.0f} %"]
        parts += [f"{count:,} {name}" for name, count in counts.items()]
        if self._total > len(self._waiting) + 1e6:  # the weights are bytes
            parts.append(f"{done / 1e6 / seconds:.1f} MB/s")
        if 0 < done < self._total:
            parts.append(f"ETA {_duration(seconds * (self._total - done) / done)}")
        else:
            parts.append(_duration(seconds))
        return " | ".join(parts)

    def _collect(self) -> None:
        """Count the tasks whose record has appeared."""
        for path in self._finished():
            self._done += self._waiting.pop(path)
            record = read_json(path)
            for name, count in self._describe(record).items():
                self._counts[name] = self._counts.get(name, 0) + count

    def _finished(self) -> list[AnyPath]:
        first = next(iter(self._waiting), None)
        if isinstance(first, RemotePath):  # all are of one folder: one listing shows them
            names = first.parent.files()
            return [path for path in self._waiting if path.name in names]
        return [path for path in self._waiting if path.exists()]

    def _under_way(self) -> tuple[int, int]:
        """Return bytes and rows done of the tasks under way, by the last heartbeat of each."""
        if not isinstance(self._heartbeats, Path):
            return 0, 0
        waiting = {path.name[: -len(".json")]: weight for path, weight in self._waiting.items()}
        states: dict[str, tuple[int, int, int]] = {}
        for path in self._heartbeats.glob("*.json"):
            with suppress(OSError, ValueError):
                state = json.loads(path.read_bytes())
                task, done = state["task"], min(state["bytes"], waiting.get(state["task"], 0))
                if task in waiting:
                    beat = (path.stat().st_mtime_ns, done, state["rows"])
                    states[task] = max(beat, states.get(task, beat))
        return sum(beat[1] for beat in states.values()), sum(beat[2] for beat in states.values())


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


def progress_counts(record: Mapping[str, Any]) -> dict[str, int]:
    """Return what the record of a finished task adds to the progress line."""
    if "segments" not in record:
        sources = record.get("dropped", {}).values()
        dropped = [rows for reasons in sources for rows in reasons.values()]
        return {"documents dropped": sum(dropped)} if dropped else {}
    tallies = [tally for segment in record["segments"] for tally in segment["tallies"]]
    kept = sum(tally["rows"] for tally in tallies if tally["verdict"] == KEPT)
    rows = sum(tally["rows"] for tally in tallies)
    return {"documents": rows, "kept": kept, "dropped": rows - kept}
