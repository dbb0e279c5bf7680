"""Readers turn the bytes of a split into records, or into damage where a record should be."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from pipelines.read.input_format import InputFormat
from pipelines.read.json_object import object_record
from pipelines.read.record import Damage, Reason, Record
from pipelines.read.repair import repaired
from pipelines.read.split import FileSplit
from pipelines.read.stream import ByteStream, open_stream


class RecordReader(ABC):
    """Iterates once over the records of a split, in the order of the file."""

    def __init__(self, split: FileSplit, input_format: InputFormat) -> None:
        """Create a reader of a split."""
        self.split = split
        self.input_format = input_format
        self.skips_checksum = False
        """Whether to read only the needed columns of a table, which leaves the checksum unknown."""
        self.crc32c: int | None = None
        """The checksum of the split's bytes as stored; None until all bytes are read."""
        self.truncation: Reason | None = None
        """Why an unknown number of records is missing at the end; None if none are missing."""

    @property
    @abstractmethod
    def done(self) -> int:
        """How much of [split.start, split.end) has been read; valid during iteration."""

    def __iter__(self) -> Iterator[Record | Damage]:
        """Yield records, and damage where a record should be.

        Raises:
            UserError: The file cannot be read, has changed since it was cut into splits, or is in a
                different format.
        """
        items = self._read()
        if not self.input_format.repairs:
            return items
        return (repaired(item, self.input_format, parse=self._parse) for item in items)

    @abstractmethod
    def _read(self) -> Iterator[Record | Damage]:
        """Open the file, and yield the records of the split."""

    def _parse(self, offset: int, raw: bytes, broken: Reason | None) -> Record | Damage | None:
        """Return the record that some bytes contain; the arguments are those of `object_record`."""
        return object_record(offset, raw, broken)


class StreamReader(RecordReader):
    """Reads a split of a text, or of any other file that is read sequentially."""

    _stream: ByteStream

    @property
    def done(self) -> int:
        """The number of stored bytes of the split that have been read so far."""
        return self._stream.done

    def _read(self) -> Iterator[Record | Damage]:
        # The byte before a split shows whether a line begins there.
        with open_stream(self.split, offset=max(0, self.split.start - 1)) as self._stream:
            yield from self._records(self._stream)
            self.crc32c = self._stream.crc32c

    @abstractmethod
    def _records(self, stream: ByteStream) -> Iterator[Record | Damage]:
        """Yield the records of a stream, and read it to its end."""
