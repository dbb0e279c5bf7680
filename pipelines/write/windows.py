"""Window panes: which generation each pane becomes, and how long its segments are kept."""

import re
import time
from dataclasses import dataclass
from typing import Any

from pipelines.execute import beam
from shards.errors import UserError

KEPT_SECONDS = 3600
"""The seconds for which segments of closed windows are kept if no generation has used them, because
a pane that Beam has already handed out may need them."""

_TIMINGS = ("early", "on-time", "late", "on-time")
"""The timings by Beam's number; the last is UNKNOWN, which means that there is no trigger."""

_STEM = re.compile(r"[0-9a-f]{24}-(\d+)-(\d+)\..*")


@dataclass(frozen=True, kw_only=True, order=True)
class WindowPane:
    """A pane: one firing of a window's trigger. Panes are ordered by window, then by firing."""

    end: int
    """The end of the window in microseconds since 1970."""
    start: int
    """The start of the window in microseconds since 1970."""
    index: int
    """The number of earlier panes of the window."""
    timing: str
    """early, on-time or late."""

    @classmethod
    def of(cls, window: Any, pane: Any) -> "WindowPane":
        """Return the pane that Beam describes by a window and its pane info."""
        start, end = window.start.micros, window.end.micros
        return cls(end=end, start=start, index=pane.index, timing=_TIMINGS[pane.timing])

    @property
    def window(self) -> str:
        """The prefix of the input paths of all panes of the window, made from its bounds."""
        if self.end >= beam.GlobalWindow().end.micros:
            return "rows/all/"
        return f"rows/{_moment(self.start)}--{_moment(self.end)}/"

    @property
    def path(self) -> str:
        """The path that the manifest gives for the rows of this pane, which come from no file."""
        return f"{self.window}{self.timing}-{self.index}"

    def outlives(self, name: str) -> bool:
        """Return whether no later pane can need a file of a segment once this pane has come.

        Args:
            name: The name of the file, which contains the result of `lifetime`.
        """
        found = _STEM.fullmatch(name)
        if found is None or self.timing == "early":  # the watermark is unknown
            return False
        closes, written = map(int, found.groups())
        return closes * 1_000_000 < self.end and written < time.time() - KEPT_SECONDS


def lifetime(window: Any, lateness: int) -> str:
    """Return a part of a segment's file names: when its window closes, and the current time.

    Args:
        window: The window of the segment's rows.
        lateness: The maximum number of seconds from the end of the window to a row's arrival.

    Raises:
        UserError: The window has no usable time.
    """
    if isinstance(window, beam.GlobalWindow):
        return "0000"
    if window.end > beam.GlobalWindow().end:
        raise UserError(
            "the batches that WriteDataset received are in windows without a time, because "
            "FromRows made them before there were windows: put WindowInto before FromRows"
        )
    if window.start <= beam.GlobalWindow().start:  # some engines do not report such a window
        raise UserError(
            "the rows that WriteDataset received have no timestamps: add them before WindowInto, "
            "as in beam.Map(lambda row: beam.window.TimestampedValue(row, SECONDS))"
        )
    return f"{max(0, window.end.seconds() + lateness)}-{int(time.time())}"


def _moment(micros: int) -> str:
    return f"{beam.Timestamp(micros=micros).to_utc_datetime().isoformat()}Z"
