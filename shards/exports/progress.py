"""Progress of an export on a terminal: one line that changes. Elsewhere nothing is shown."""

import sys
import time
from typing import TextIO

from shards.shown import tell

_SECONDS = 0.5
_CLEAR = "\r\033[K"


class Progress:
    """Counts bytes, and shows them now and then."""

    def __init__(self, total: int, *, stream: TextIO | None = None) -> None:
        """Begin.

        Args:
            total: Bytes that are to be made.
            stream: Where the line goes; the standard error by default.
        """
        self._total = max(1, total)
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._started = self._shown = time.monotonic()
        self._done = self._written = 0

    def write(self, count: int) -> None:
        """Count bytes that were written."""
        self._written += count
        self._show(self._done + self._written)

    def finish(self, count: int) -> None:
        """Count a finished file, however it came about, and clear the line for another one."""
        self._done += count
        self._written = 0
        if self._terminal:
            tell("", stream=self._stream, start=_CLEAR, end="")

    def _show(self, done: int) -> None:
        if not self._terminal:
            return
        now = time.monotonic()
        if now - self._shown < _SECONDS:
            return
        self._shown = now
        seconds = max(now - self._started, 1e-3)
        left = seconds * max(0, self._total - done) / max(1, done)
        line = (
            f"export {min(100, 100 * done // self._total)} % | {done / 1e9:.1f} of "
            f"{self._total / 1e9:.1f} GB | {done / 1e6 / seconds:,.0f} MB/s | {left:.0f} s left"
        )
        tell(line, stream=self._stream, start=_CLEAR, end="")
