"""A firing of a window: which generation it becomes, and how long segments wait for it."""

import re
import time
from dataclasses import dataclass
from typing import Any

from pipelines.execute import beam
from shards.errors import UserError

KEPT_SECONDS = 3600
"""How long segments stay whose window has closed and which no generation has taken: a firing that
was handed out may yet need them."""

_TIMINGS = ("early", "on-time", "late", "on-time")
"""By Beam's number; where no trigger is, it says unknown."""

_STEM = re.compile(r"[0-9a-f]{24}-(\d+)-(\d+)\..*")


@dataclass(frozen=True, kw_only=True, order=True)
class Firing:
    """Which firing of which window, in the order of windows and of their firings."""

    end: int
    """Of the window, in microseconds since 1970, and so is its start."""
    start: int
    index: int
    """How many firings of the window came before."""
    timing: str
    """early, on-time or late."""

    @classmethod
    def of(cls, window: Any, pane: Any) -> "Firing":
        """Return the firing that Beam describes by a window and a pane."""
        start, end = window.start.micros, window.end.micros
        return cls(end=end, start=start, index=pane.index, timing=_TIMINGS[pane.timing])

    @property
    def window(self) -> str:
        """The common beginning of the inputs of all firings of the window, from its bounds."""
        if self.end >= beam.GlobalWindow().end.micros:
            return "rows/all/"
        return f"rows/{_moment(self.start)}--{_moment(self.end)}/"

    @property
    def path(self) -> str:
        """The placeholder for the path of an input that is not a file; each firing has another."""
        return f"{self.window}{self.timing}-{self.index}"

    def outlives(self, name: str) -> bool:
        """Return whether a file of a segment is of no use any more once this firing has come.

        Args:
            name: The file's, as `lifetime` made it.
        """
        found = _STEM.fullmatch(name)
        if found is None or self.timing == "early":  # the watermark may be anywhere
            return False
        closes, written = map(int, found.groups())
        return closes * 1_000_000 < self.end and written < time.time() - KEPT_SECONDS


def lifetime(window: Any, lateness: int) -> str:
    """Return a part of the names of a segment's files: when its window closes, and when it is.

    Args:
        window: Of its rows.
        lateness: Seconds that rows may come after the end of the window.

    Raises:
        UserError: The window is none of a time that rows have.
    """
    if isinstance(window, beam.GlobalWindow):
        return "0000"
    if window.end > beam.GlobalWindow().end:
        raise UserError(
            "WriteDataset was given batches in windows of a time that none has, because FromRows "
            "made them before there were windows: put WindowInto before FromRows"
        )
    if window.start <= beam.GlobalWindow().start:  # some engines leave such a window out
        raise UserError(
            "WriteDataset was given rows in windows that have no time: give them one, as in "
            "beam.Map(lambda row: beam.window.TimestampedValue(row, SECONDS)) before WindowInto"
        )
    return f"{max(0, window.end.seconds() + lateness)}-{int(time.time())}"


def _moment(micros: int) -> str:
    return f"{beam.Timestamp(micros=micros).to_utc_datetime().isoformat()}Z"
