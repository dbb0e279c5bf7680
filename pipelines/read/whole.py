"""Reads a file of text as one record."""

from collections.abc import Iterator

from pipelines.read.file_head import BOM
from pipelines.read.record import (
    MAX_RECORD_BYTES,
    RAW_BYTES,
    WHOLE_BYTES,
    Damage,
    Reason,
    Record,
)
from pipelines.read.split import FileSplit
from pipelines.read.stream import ByteStream, open_stream


class WholeReader:
    """Iterates over the one record of a file; iterated to its end, it knows `crc32c`."""

    def __init__(self, split: FileSplit, *, max_record_bytes: int = MAX_RECORD_BYTES) -> None:
        """Make a reader.

        Args:
            split: The file, whole.
            max_record_bytes: A longer text is damage.
        """
        self.crc32c: int | None = None
        """Checksum of the file's bytes as stored."""
        self.cut: Reason | None = None
        """Why an unknown number of records is missing at the end; None if none is."""
        self._split = split
        self._max_bytes = max_record_bytes
        self._stream: ByteStream

    @property
    def done(self) -> int:
        """Return how many bytes of the file have been read so far; valid during iteration."""
        return self._stream.done

    def __iter__(self) -> Iterator[Record | Damage]:
        """Yield the text of the file as the record {"text": …}, unless it is blank.

        Raises:
            UserError: The file cannot be read, or has changed since it was found.
        """
        with open_stream(self._split) as self._stream:
            content = self._stream.read(self._max_bytes + 1)
            length = len(content)
            while block := self._stream.read(1 << 20):
                length += len(block)
            self.cut = self._stream.failure
            if item := self._item(content, length):
                yield item
            self.crc32c = self._stream.crc32c

    def _item(self, content: bytes, length: int) -> Record | Damage | None:
        if self.cut:
            return Damage(0, length, self.cut, content[:RAW_BYTES])
        if length > self._max_bytes:
            return Damage(0, length, "too-long", content[:RAW_BYTES])
        return text_file(0, content, None)


def text_file(offset: int, content: bytes, broken: Reason | None) -> Record | Damage | None:
    r"""Return the record {"text": …} of the content of a file; None if it is blank.

    Args:
        offset: Where it begins.
        content: Its bytes; \r\n ends a line as \n does.
        broken: Why it may lack its end, which makes it damage; None if it is whole.
    """
    try:
        text = content.removeprefix(BOM).decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return Damage(offset, len(content), broken or "bad-utf8", content[:WHOLE_BYTES])
    if broken:
        return Damage(offset, len(content), broken, content[:RAW_BYTES])
    return Record(offset, len(content), {"text": text}, content) if text.strip() else None
