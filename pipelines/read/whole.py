"""Reads a file of text as one record."""

from collections.abc import Iterator

from pipelines.read.file_head import BOM
from pipelines.read.reader import StreamReader
from pipelines.read.record import RAW_BYTES, WHOLE_BYTES, Damage, Reason, Record
from pipelines.read.stream import ByteStream, skip_rest


class WholeReader(StreamReader):
    """Reads the text of a file as the record {"text": …}, unless it is blank."""

    def _records(self, stream: ByteStream) -> Iterator[Record | Damage]:
        content = stream.read(self._max_bytes + 1)
        length = len(content) + skip_rest(stream)
        self.cut = stream.failure
        if self.cut or length > self._max_bytes:
            yield Damage(0, length, self.cut or "too-long", content[:RAW_BYTES])
        elif item := text_file(0, content, None):
            yield item


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
