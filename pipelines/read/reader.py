"""What reads a split: its bytes become records, and damage where a record should be."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from pipelines.read.record import MAX_RECORD_BYTES, Damage, Reason, Record
from pipelines.read.split import FileSplit
from pipelines.read.stream import ByteStream, open_stream


class RecordReader(ABC):
    """Iterates once over what a split holds, in the order of the file."""

    repair: Callable[[Record | Damage], Record | Damage] | None = None
    """Changes each record, or damage into one, as options ask."""

    def __init__(self, split: FileSplit, *, max_record_bytes: int = MAX_RECORD_BYTES) -> None:
        """Make a reader.

        Args:
            split: What to read.
            max_record_bytes: A longer record is damage.
        """
        self.split = split
        self.crc32c: int | None = None
        """Checksum of the split's bytes as stored; None until all is read."""
        self.cut: Reason | None = None
        """Why an unknown number of records is missing at the end; None if none is."""
        self._max_bytes = max_record_bytes

    @property
    @abstractmethod
    def done(self) -> int:
        """How much of [split.start, split.end) has been read so far; valid during iteration."""

    def __iter__(self) -> Iterator[Record | Damage]:
        """Yield records, and damage where a record should be.

        Raises:
            UserError: The file cannot be read, has changed since it was cut into splits, or is in
                another format.
        """
        items = self._read()
        return items if self.repair is None else map(self.repair, items)

    @abstractmethod
    def _read(self) -> Iterator[Record | Damage]:
        """Open the file, and yield what the split holds."""


class StreamReader(RecordReader):
    """Reads a split of a text, or of any other file that is read from front to back."""

    _stream: ByteStream

    @property
    def done(self) -> int:
        """How many bytes of the split have been read so far, as stored."""
        return self._stream.done

    def _read(self) -> Iterator[Record | Damage]:
        # The byte before a split shows whether a line begins there.
        with open_stream(self.split, offset=max(0, self.split.start - 1)) as self._stream:
            yield from self._records(self._stream)
            self.crc32c = self._stream.crc32c

    @abstractmethod
    def _records(self, stream: ByteStream) -> Iterator[Record | Damage]:
        """Yield what a stream holds, and read it to its end."""
