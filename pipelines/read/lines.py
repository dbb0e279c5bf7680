"""Reads text: JSON lines, one text per line, or one text per file.

The reader of a split returns the lines that begin in the split's range, and reads past the range to
the end of the last line, so each line belongs to exactly one split. A line ends with a line feed; a
carriage return before it is part of the line. Blank lines and a byte order mark are not records.
"""

from collections.abc import Iterator

from pipelines.read.reader import StreamReader
from pipelines.read.record import BOM, RAW_BYTES, WHOLE_BYTES, Damage, Reason, Record
from pipelines.read.stream import ByteStream, skip_rest

_MARK = BOM.decode()
_BEYOND_BYTES = 64 << 10
"""The size of the first block read past the end of a split."""


class JsonLinesReader(StreamReader):
    """Reads the objects on the lines that begin in a split.

    Memory holds one block and one line of the maximum length.
    """

    block_bytes = 256 << 10
    """The number of bytes read at a time; it is small enough that the bytes are still in the CPU
    cache when they are cut into lines."""

    def _records(self, stream: ByteStream) -> Iterator[Record | Damage]:
        offset, data, end = self._begin()
        if offset < end and (offset < stream.size or not self.split.start):
            yield from self._walk(offset, data, end)

    def _begin(self) -> tuple[int, bytes, int]:
        """Return the first line's offset, its bytes read so far, and the end of the range."""
        if self.split.start:
            # The previous line ends with the byte before the split, or later.
            return *self._after_line(self.split.start - 1, b""), self._stream.end
        data = self._stream.read(len(BOM))
        if data != BOM:
            return 0, data, self._stream.end
        # A split that ends within the mark still contains the line after the mark.
        return len(BOM), b"", max(self._stream.end, len(BOM) + 1)

    def _walk(self, offset: int, data: bytes, end: int) -> Iterator[Record | Damage]:
        """Yield the lines that begin in [offset, end); `data` contains the bytes already read."""
        while offset < end:
            *lines, data = data.split(b"\n")
            for line in lines:
                if offset >= end:
                    return
                if item := self._item(offset, line, None):
                    yield item
                offset += len(line) + 1
            if offset >= end:
                return
            if len(data) > max(self.input_format.max_record_bytes, RAW_BYTES):
                following, rest = self._after_line(offset, data)
                yield Damage(offset, following - offset - 1, "too-long", data[:RAW_BYTES])
                offset, data = following, rest
            elif block := self._block(len(data)):
                data += block
            else:
                yield from self._last(offset, data)
                return

    def _last(self, offset: int, line: bytes) -> Iterator[Record | Damage]:
        """Yield the record after the last line feed, and damage if the archive ended too early."""
        failure = self.truncation = self._stream.failure
        item = self._item(offset, line, failure)
        if item:
            yield item
        if failure and not (isinstance(item, Damage) and item.reason == failure):
            yield Damage(self._stream.size, 0, failure, b"")

    def _item(self, offset: int, line: bytes, broken: Reason | None) -> Record | Damage | None:
        if len(line) > self.input_format.max_record_bytes:
            return Damage(offset, len(line), "too-long", line[:RAW_BYTES])
        return self._parse(offset, line, broken)

    def _after_line(self, offset: int, data: bytes) -> tuple[int, bytes]:
        """Return the offset after the line that begins with `data`, and the bytes read after it.

        At the end of the file, the line ends as if a line feed followed.
        """
        while (line_end := data.find(b"\n")) < 0:
            offset += len(data)
            data = self._block(0)
            if not data:
                return offset + 1, b""
        return offset + line_end + 1, data[line_end + 1 :]

    def _block(self, held_bytes: int) -> bytes:
        """Return the next block; blocks grow with the line, so joining them takes linear time."""
        stream = self._stream
        left = stream.end - stream.offset
        size = min(self.block_bytes, left if left > 0 else _BEYOND_BYTES)
        return stream.read(max(size, held_bytes // 2))


class TextLinesReader(JsonLinesReader):
    """Reads each line as the record {"text": line}."""

    def _parse(self, offset: int, raw: bytes, broken: Reason | None) -> Record | Damage | None:
        return text_record(offset, raw, broken, newline=self.input_format.newline)


class TextFileReader(StreamReader):
    """Reads a file as the record {"text": …}, unless the file is blank."""

    def _records(self, stream: ByteStream) -> Iterator[Record | Damage]:
        most = self.input_format.max_record_bytes
        content = stream.read(most + 1)
        length = len(content) + skip_rest(stream)
        self.truncation = stream.failure
        if self.truncation or length > most:
            yield Damage(0, length, self.truncation or "too-long", content[:RAW_BYTES])
        elif item := self._parse(0, content, None):
            yield item

    def _parse(self, offset: int, raw: bytes, broken: Reason | None) -> Record | Damage | None:
        return text_record(offset, raw, broken)


def text_record(
    offset: int, raw: bytes, broken: Reason | None, *, newline: str = ""
) -> Record | Damage | None:
    r"""Return the record {"text": …} for a text, or damage; None if the text is blank.

    Args:
        offset: The offset of the text.
        raw: The bytes of the text without the final line feed; \r\n inside it becomes \n.
        broken: Why the text may be incomplete, which makes it damage; None if it is complete.
        newline: The text that stands for a line feed; "" if there is none.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return Damage(offset, len(raw), broken or "bad-utf8", raw[:WHOLE_BYTES])
    if text.startswith(_MARK):  # The mark belongs to a second file that was joined to the first.
        text = text.lstrip(_MARK)
    if not text or text.isspace():
        return None
    if broken:
        return Damage(offset, len(raw), broken, raw[:RAW_BYTES])
    if b"\r" in raw:
        text = text.removesuffix("\r").replace("\r\n", "\n")
    if newline:
        text = text.replace(newline, "\n")
    return Record(offset, len(raw), {"text": text}, raw)
