"""Reads files line by line; a function decides what each line is.

A split reads the lines that begin in its range, including all of the last one, so splits always
join. A line ends with a line feed; a carriage return before it is part of the line. Blank lines
and a byte order mark are not records.
"""

import itertools
from collections.abc import Callable, Iterator

from pipelines.read.file_head import BOM, excerpt, foreign_format
from pipelines.read.reader import StreamReader
from pipelines.read.record import (
    MAX_RECORD_BYTES,
    RAW_BYTES,
    WHOLE_BYTES,
    Damage,
    Reason,
    Record,
)
from pipelines.read.split import FileSplit
from pipelines.read.stream import ByteStream
from shards.errors import UserError

Parse = Callable[[int, bytes, Reason | None], Record | Damage | None]
"""Returns what the line at an offset holds, None for no record.

The third argument says why the line may lack its end; it is None if the line is whole.
"""

LINE_BLOCK_BYTES = 256 << 10
"""How much is read at a time: little enough that lines are still in the cache when they are cut."""
_MARK = BOM.decode()
_BEYOND_BYTES = 64 << 10
"""Size of the first block read past the end of a split."""


class LineReader(StreamReader):
    """Reads the lines that begin in a split.

    Memory holds a block and a line of the greatest length.
    """

    def __init__(
        self,
        split: FileSplit,
        parse: Parse,
        *,
        max_record_bytes: int = MAX_RECORD_BYTES,
        block_bytes: int = LINE_BLOCK_BYTES,
    ) -> None:
        """Make a reader.

        Args:
            split: The range to read.
            parse: Says what a line holds.
            max_record_bytes: A longer line is damage.
            block_bytes: How much is read at a time.
        """
        super().__init__(split, max_record_bytes=max_record_bytes)
        self._parse = parse
        self._block_bytes = block_bytes

    def _records(self, stream: ByteStream) -> Iterator[Record | Damage]:
        offset, data, end = self._begin()
        if offset < end and (offset < stream.size or not self.split.start):
            yield from self._walk(offset, data, end)

    def _begin(self) -> tuple[int, bytes, int]:
        """Return where the first line begins, what was read of it, and where the range ends."""
        if self.split.start:
            # The previous line ends with the byte before the split, or later.
            return *self._after_line(self.split.start - 1, b""), self._stream.end
        data = self._stream.read(len(BOM))
        if data != BOM:
            return 0, data, self._stream.end
        # A split that ends within the mark still has the line after it.
        return len(BOM), b"", max(self._stream.end, len(BOM) + 1)

    def _walk(self, offset: int, data: bytes, end: int) -> Iterator[Record | Damage]:
        """Yield lines that begin in [offset, end), where `data` are."""
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
            if len(data) > max(self._max_bytes, RAW_BYTES):
                following, rest = self._after_line(offset, data)
                yield Damage(offset, following - offset - 1, "too-long", data[:RAW_BYTES])
                offset, data = following, rest
            elif block := self._block(len(data)):
                data += block
            else:
                yield from self._last(offset, data)
                return

    def _last(self, offset: int, line: bytes) -> Iterator[Record | Damage]:
        """Yield what follows the last line feed, and why the archive ended early if it did."""
        failure = self.cut = self._stream.failure
        item = self._item(offset, line, failure)
        if item:
            yield item
        if failure and not (isinstance(item, Damage) and item.reason == failure):
            yield Damage(self._stream.size, 0, failure, b"")

    def _item(self, offset: int, line: bytes, broken: Reason | None) -> Record | Damage | None:
        if len(line) > self._max_bytes:
            return Damage(offset, len(line), "too-long", line[:RAW_BYTES])
        return self._parse(offset, line, broken)

    def _after_line(self, offset: int, data: bytes) -> tuple[int, bytes]:
        """Return the offset after the line feed of the line that begins with `data`, and the rest.

        At the end of the file the line ends as if a line feed followed.
        """
        while (line_end := data.find(b"\n")) < 0:
            offset += len(data)
            data = self._block(0)
            if not data:
                return offset + 1, b""
        return offset + line_end + 1, data[line_end + 1 :]

    def _block(self, held_bytes: int) -> bytes:
        """Return the next block; it grows with what is held of a line, so joining is linear."""
        stream = self._stream
        left = stream.end - stream.offset
        size = min(self._block_bytes, left if left > 0 else _BEYOND_BYTES)
        return stream.read(max(size, held_bytes // 2))


def text_line(
    offset: int, line: bytes, broken: Reason | None, *, newline: str
) -> Record | Damage | None:
    """Return the record {"text": line} of a line of plain text.

    Args:
        offset: Where it begins.
        line: Its bytes, without the line feed.
        broken: Why the line may lack its end, which makes it damage; None if it is whole.
        newline: What stands for a line feed in the text; "" if nothing does.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return Damage(offset, len(line), broken or "bad-utf8", line[:WHOLE_BYTES])
    if text.startswith(_MARK):  # that of a second file joined to the first
        text = text.lstrip(_MARK)
    if not text or text.isspace():
        return None
    if broken:
        return Damage(offset, len(line), broken, line[:RAW_BYTES])
    text = text.removesuffix("\r")
    if newline:
        text = text.replace(newline, "\n")
    return Record(offset, len(line), {"text": text}, line)


def looks_wrapped(head: bytes) -> bool:
    """Return whether a text seems to run on from line to line, as in files of books.

    Its lines are of about one width, and many end within a sentence.

    Args:
        head: The first bytes of its file, unpacked.
    """
    lines = [line.strip() for line in head.decode(errors="replace").split("\n")[:-1]]
    widths = sorted(map(len, filter(None, lines)))
    if len(widths) < _MIN_LINES:
        return False
    pairs = [(line, after) for line, after in itertools.pairwise(lines) if line and after]
    runs_on = sum(line[-1] not in _ENDS and not after[0].isupper() for line, after in pairs)
    middle, wide = widths[len(widths) // 2], widths[len(widths) * 9 // 10]
    return middle >= _MIN_WIDTH and wide <= _MAX_WIDTH and runs_on >= _MIN_RUNNING * len(widths)


_MIN_LINES = 8
_MIN_WIDTH, _MAX_WIDTH = 25, 120
"""Characters of the lines of a wrapped text: of the middle one, and of nine in ten."""
_MIN_RUNNING = 0.3
_ENDS = ".!?:;…。！？：；\"'”’」』)）"


def check_lines(head: bytes, path: str) -> None:
    """Check that a file may hold text.

    Args:
        head: Its first bytes, unpacked.
        path: Where it is.

    Raises:
        UserError: It is not; the message says what it is instead.
    """
    foreign = foreign_format(head)
    if foreign is None and b"\0" in head:
        foreign = f"it is binary: it begins with {excerpt(head)}"
    if foreign:
        raise UserError(f"The input {path} holds no lines of text: {foreign}. Expected was UTF-8.")
