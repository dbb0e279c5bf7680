"""Reads files line by line; what a line says is for a function of the line to find out.

A split reads the lines that begin in its range, the last one to its end, so splits always join. A
line ends with a line feed; a carriage return before it is part of the line. Blank lines and a byte
order mark are no records.
"""

from collections.abc import Callable, Generator, Iterator

from pipelines.inputs.split import Link, Split
from pipelines.readers.json_frame import foreign, shown
from pipelines.readers.record import (
    MAX_RECORD_BYTES,
    RAW_BYTES,
    Damage,
    Reason,
    Record,
)
from pipelines.readers.stream import ByteStream, open_stream
from shards.errors import UserError

Parse = Callable[[int, bytes, Reason | None], Record | Damage | None]
"""Returns what the line at an offset is, None for no record.

The third argument says why the line may lack its end, None where it is whole.
"""

LINE_BLOCK_BYTES = 256 << 10
"""How much is read at a time: lines are cut while they are in the processor's cache."""
BOM = b"\xef\xbb\xbf"
_BEYOND_BYTES = 64 << 10
"""Size of the first block read behind the end of a split."""


class LineReader:
    """Iterates over the lines of one split; iterated to its end, it knows `link` and `crc32c`.

    It holds a block and a line of the greatest length.
    """

    def __init__(
        self,
        split: Split,
        parse: Parse,
        *,
        max_record_bytes: int = MAX_RECORD_BYTES,
        block_bytes: int = LINE_BLOCK_BYTES,
    ) -> None:
        """Make a reader.

        Args:
            split: The range to read.
            parse: Says what a line is.
            max_record_bytes: A longer line is damage.
            block_bytes: How much is read at a time.
        """
        self.link: Link | None = None
        """Where the reading began and stopped."""
        self.crc32c: int | None = None
        """Checksum of the bytes [split.start, split.end) of the file as stored."""
        self._split = split
        self._parse = parse
        self._max_bytes = max_record_bytes
        self._block_bytes = block_bytes
        self._stream: ByteStream

    @property
    def done(self) -> int:
        """Return how much of the split has been read so far; asked while it is read."""
        return self._stream.done

    def __iter__(self) -> Iterator[Record | Damage]:
        """Yield what the lines that begin in the split are, in the order of the file.

        Raises:
            UserError: The file cannot be read, or changed since it was cut into splits.
        """
        split = self._split
        with open_stream(split, at=max(0, split.start - 1)) as stream:
            self._stream = stream
            at, data, end = self._begin()
            if at < end and (at < stream.size or not split.start):
                stop = yield from self._walk(at, data, end)
                # What ends with a compressed file's content ends with the file's bytes.
                following = split.file_bytes if stop >= stream.size else stop
                self.link = Link(end=split.end, first=at, next=following)
            else:
                self.link = Link(end=split.end, first=None, next=None)
            self.crc32c = stream.crc32c

    def _begin(self) -> tuple[int, bytes, int]:
        """Return where the first line begins, what was read of it, and where lines are not ours."""
        if self._split.start:
            # The line before ends with the byte before the split, or later.
            return *self._behind_line(self._split.start - 1, b""), self._stream.end
        data = self._stream.read(len(BOM))
        if data != BOM:
            return 0, data, self._stream.end
        # A split that ends within the mark has the line behind it all the same.
        return len(BOM), b"", max(self._stream.end, len(BOM) + 1)

    def _walk(self, at: int, data: bytes, end: int) -> Generator[Record | Damage, None, int]:
        """Yield the lines that begin in [at, end), where `data` are; return where the next does."""
        parse = self._parse
        while at < end:
            *lines, data = data.split(b"\n")
            for line in lines:
                if at >= end:
                    return at
                item = parse(at, line, None) if len(line) <= self._max_bytes else _long(at, line)
                if item is not None:
                    yield item
                at += len(line) + 1
            if at >= end:
                break
            if len(data) > max(self._max_bytes, RAW_BYTES):
                following, rest = self._behind_line(at, data)
                yield Damage(at, following - at - 1, "too-long", data[:RAW_BYTES])
                at, data = following, rest
            elif block := self._block(len(data)):
                data += block
            else:
                yield from self._last(at, data)
                return self._stream.size
        return at

    def _last(self, at: int, line: bytes) -> Iterator[Record | Damage]:
        """Yield what follows the last line feed, and why the archive ended there if it broke."""
        failure = self._stream.failure
        item = self._parse(at, line, failure) if len(line) <= self._max_bytes else _long(at, line)
        if item is not None:
            yield item
        if failure and not (isinstance(item, Damage) and item.reason == failure):
            yield Damage(self._stream.size, 0, failure, b"")

    def _behind_line(self, at: int, data: bytes) -> tuple[int, bytes]:
        """Return where the line that `data` begin ends, behind its line feed, and what follows.

        At the end of the file the line ends as if a line feed followed.
        """
        while (found := data.find(b"\n")) < 0:
            at += len(data)
            data = self._block(0)
            if not data:
                return at + 1, b""
        return at + found + 1, data[found + 1 :]

    def _block(self, held_bytes: int) -> bytes:
        """Return the next block, which grows with what is held of a line: joining is linear."""
        stream = self._stream
        left = stream.end - stream.at
        size = min(self._block_bytes, left if left > 0 else _BEYOND_BYTES)
        return stream.read(max(size, held_bytes // 2))


def text_line(
    at: int, line: bytes, broken: Reason | None, *, newline: str
) -> Record | Damage | None:
    """Return the record {"text": line} of a line of plain text.

    Args:
        at: Where it begins.
        line: Its bytes, without the line feed.
        broken: Why it may lack its end: then it is damage.
        newline: Stands for a line feed in the text; "" for nothing.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return Damage(at, len(line), broken or "bad-utf8", line[:RAW_BYTES])
    if not text or text.isspace():
        return None
    if broken:
        return Damage(at, len(line), broken, line[:RAW_BYTES])
    text = text.removesuffix("\r")
    if newline:
        text = text.replace(newline, "\n")
    return Record(at, len(line), {"text": text}, line)


def check_lines(head: bytes, path: str) -> None:
    """Check that a file may be text.

    Args:
        head: Its first bytes, unpacked.
        path: Where it is.

    Raises:
        UserError: It is not; the message says what it is instead.
    """
    other = foreign(head)
    if other is None and b"\0" in head:
        other = f"it is binary: it begins with {shown(head)}"
    if other:
        raise UserError(f"The input {path} holds no lines of text: {other}. Expected was UTF-8.")


def _long(at: int, line: bytes) -> Damage:
    return Damage(at, len(line), "too-long", line[:RAW_BYTES])
