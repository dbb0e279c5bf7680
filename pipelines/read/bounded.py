"""A reader that stops early and reports how much of the file it has read."""

import time
from collections.abc import Iterator
from dataclasses import replace

from pipelines.read.input_format import REJECT
from pipelines.read.reader import RecordReader
from pipelines.read.record import Damage, Record


class BoundedReader(RecordReader):
    """Reads a split until a given number of bytes or rows is read or a given time has passed."""

    def __init__(self, reader: RecordReader, *, seconds: float, units: int, packed: bool) -> None:
        """Create a reader that stops early.

        Args:
            reader: The reader of the split.
            seconds: The time after which the reader stops.
            units: The number of bytes or rows (the unit of the reader's offsets) after which
                reading stops.
            packed: Whether the file is compressed or in a corpus's custom format. The stored size
                of records is then known only when `done` increases, so reading continues until it
                does.
        """
        super().__init__(reader.split, replace(reader.input_format, bad_utf8=REJECT, nul=REJECT))
        self.crc32c = 0
        self._reader = reader
        self._seconds = seconds
        self._units = units
        self._packed = packed
        self._first = self._last = -1
        self._step = (0, 0)
        self._ended = False

    @property
    def done(self) -> int:
        """How much of the split has been read so far, in the unit of the given reader's `done`."""
        return self._reader.done

    def _read(self) -> Iterator[Record | Damage]:
        before, self._until = 0, time.monotonic() + self._seconds
        for item in self._reader:
            if self._first < 0:
                self._first = self._last = item.offset
            elif self.done != before:
                self._step = (before, self._last)
            before = self.done
            if self._enough():
                return
            yield item
            self._last = item.offset + item.length
        self._ended = True

    def _enough(self) -> bool:
        if self._packed and not self._step[0]:
            return False
        read = self._last - self._first
        return read >= self._units or (read > 0 and time.monotonic() > self._until)

    @property
    def consumed(self) -> float:
        """The size of the yielded records, in the unit of split.start; estimated if packed."""
        if self._ended:
            return float(self.split.end - self.split.start)
        if not self._packed:
            return float(self._last - self._first)
        done, unpacked = self._step
        return done * self._last / max(unpacked, 1)
