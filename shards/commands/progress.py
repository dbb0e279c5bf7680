"""Shows progress: a changing line on a terminal, a bar in a notebook, and plain lines elsewhere.

    for path, entry in track("verify", files, total=num_bytes, weight=of_bytes, unit="MB"):

    verify  40 % | 4.0 MB/s | ETA 0:15

Any other output (`shards.commands.output`) replaces the line.
"""

import importlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any, Protocol, TextIO, TypeVar

from shards.commands.output import message, print_message, replace_line

PLAIN_SECONDS = 10.0
_SECONDS = 1.0

T = TypeVar("T")
F = TypeVar("F", bound="_WithBytes")


class _WithBytes(Protocol):
    @property
    def bytes(self) -> int: ...


class Display:
    """The place where a line of progress is shown.

    Args:
        stream: Where the line goes; by default a notebook's cell or the standard error.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._bar = _NotebookBar() if stream is None and in_notebook() else None
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self.changes = self._is_terminal or self._bar is not None
        """Whether each line replaces the previous one."""
        self.seconds = _SECONDS if self.changes else PLAIN_SECONDS
        """The minimum number of seconds between two lines."""

    @property
    def is_notebook(self) -> bool:
        """Whether progress is a bar in a cell, which only the thread of the cell can change."""
        return self._bar is not None

    def show(self, line: str, *, percent: float, last: bool = False) -> None:
        """Show a line and the completed percentage; the last line stays."""
        if self._bar:
            self._bar.show(line, percent=percent)
        elif self._is_terminal:
            replace_line(line, stream=self._stream, end="\n" if last else "")
        else:
            print_message(line, stream=self._stream)


def progress_line(
    name: str,
    done: float,
    total: float,
    *,
    seconds: float,
    counts: Sequence[str] = (),
    unit: str = "",
) -> str:
    """Return a line of progress.

    Args:
        name: The name of the work.
        done: The finished amount.
        total: The whole amount.
        seconds: The time since the start.
        counts: Further counts to show, such as documents.
        unit: The unit of the rate. For MB, `done` is in bytes; if "", no rate is shown.
    """
    seconds = max(seconds, 1e-3)
    parts = [f"{name} {100 * done // max(total, 1):3.0f} %", *counts]
    if unit == "MB":
        parts.append(f"{done / 1e6 / seconds:.1f} MB/s")
    elif unit:
        parts.append(f"{done / seconds:,.1f} {unit}/s")
    is_going = 0 < done < total
    left = seconds * (total - done) / done if is_going else 0
    parts.append(f"ETA {duration(left)}" if is_going else duration(seconds))
    return " | ".join(parts)


def track(
    name: str,
    items: Iterable[T],
    *,
    total: float,
    weight: Callable[[T], float] = lambda _: 1,
    unit: str = "",
    stream: TextIO | None = None,
) -> Iterator[T]:
    """Yield items and show progress from time to time.

    An item is done when the next one is requested. If the work takes less than a second, nothing
    is shown.

    Args:
        name: The name of the work.
        items: The items.
        total: The sum of all weights.
        weight: Returns the weight of an item.
        unit: The same as for `progress_line`.
        stream: The same as for `Display`.
    """
    display = Display(stream)
    start = shown = time.monotonic()
    done = 0.0

    def show(now: float, *, last: bool = False) -> None:
        line = progress_line(name, done, total, seconds=now - start, unit=unit)
        display.show(line, percent=100 * done / max(total, 1), last=last)

    for item in items:
        yield item
        done += weight(item)
        if (now := time.monotonic()) - shown >= display.seconds:
            shown = now
            show(now)
    if shown > start and display.changes:
        show(time.monotonic(), last=True)


def track_files(name: str, files: Iterable[tuple[str, F]]) -> Iterator[tuple[str, F]]:
    """Yield files with their paths and show from time to time how many bytes have been read."""
    waiting = list(files)
    total = sum(entry.bytes for _, entry in waiting)
    return track(name, waiting, total=total, weight=lambda file: file[1].bytes, unit="MB")


class _NotebookBar:
    """A progress bar and a line in the output of the running cell."""

    def __init__(self) -> None:
        self._show = importlib.import_module("IPython.display").display
        self._handle: Any = None

    def show(self, line: str, *, percent: float) -> None:
        """Show a line of progress and the completed percentage."""
        text = message(line)
        bar = f'<progress value="{percent:.0f}" max="100"></progress> <code>{escape(text)}</code>'
        shown = {"text/plain": text, "text/html": bar}
        if self._handle is None:
            self._handle = self._show(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def duration(seconds: float) -> str:
    """Return a duration in the form 0:15 or 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
