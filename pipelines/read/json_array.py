"""Reads the records of a JSON array and loses only the damaged ones.

A file is an array of objects, or an object that contains such an array under the key "RECORDS" or
another key. The file is one split, because the position of an element depends on the elements
before it. The reader walks from element to element:

    object             a record; continue after the comma that follows
    anything else      damage, which ends with the element if only its content is broken, or else
                       before the next good object
    closing bracket    the end; the remaining members of the enclosing object are skipped, and text
                       after them is damage, up to the next good object

An object is *good* if `[` or `,` precedes it, its first key follows its brace, it has a text
field, and it is valid except for bytes in its strings. Objects that are nested in an object with
broken brackets may be mistaken for good objects.
"""

import itertools
import re
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import orjson

from pipelines.read.input_format import InputFormat
from pipelines.read.json_object import damage_reason, exact_integers, parse_object
from pipelines.read.json_scan import REACH, TextWindow, array_start
from pipelines.read.peek import HEAD_BYTES, is_wrapped, not_in_format
from pipelines.read.reader import StreamReader
from pipelines.read.record import (
    BLOCK_BYTES,
    BOM,
    RAW_BYTES,
    WHOLE_BYTES,
    Damage,
    Reason,
    Record,
)
from pipelines.read.split import FileSplit
from pipelines.read.stream import ByteStream
from shards.errors import UserError

_BLANKS = b" \t\n\r"
_NEXT = re.compile(rb"[ \t\n\r]*+(?:,[ \t\n\r]*+(?=\{)|(?=\]))")
"""Matches the bytes between an object in an array and the next object or the closing bracket."""
_OBJECT_END = re.compile(rb"\}(?=[ \t\n\r]*+(?:,[ \t\n\r]*+\{|\]))")
_BRACE_AND_KEY = re.compile(rb'\{[ \t\n\r]{0,%d}+"' % REACH)
_FILE_END = re.compile(rb'\]\s*+(?:(?:,\s*+"[^"]*+"\s*+:\s*+[^][{},]++)*+\})?\s*+\Z')
"""Matches the end of the array, and of the object around it if there is one, at the end of the
file."""
_GUESSES = 8
_FREE_BYTES = 16 << 20
_STRIDE = 4


class JsonArrayReader(StreamReader):
    """Reads the records of one file.

    Memory holds one window, which is at most a block and the longest record allowed.
    """

    block_bytes = BLOCK_BYTES
    """The number of bytes to read at a time."""

    def __init__(self, split: FileSplit, input_format: InputFormat) -> None:
        """Create a reader of a whole file.

        After damage, reading continues at the next object that has a text field. Everywhere else,
        objects that have no text field are records too.
        """
        super().__init__(split, input_format)
        self._text_fields = frozenset(input_format.text_fields)
        self._max_bytes = input_format.max_record_bytes
        self._bare = split.form == "objects"
        self._head = b""
        self._window: TextWindow

    def _records(self, stream: ByteStream) -> Iterator[Record | Damage]:
        self._window = TextWindow(stream, block_bytes=self.block_bytes)
        self._head = self._window.peek(0, HEAD_BYTES)
        yield from self._walk(self._start())
        del self._window

    def _start(self) -> int:
        """Return the offset of the first element; if the file ends before it, the content's end."""
        head = self._head
        if self._bare:
            return len(head) - len(head.removeprefix(BOM))
        start = array_start(head, [*self._text_fields])
        if start is None and not self._stream.failure:
            raise not_in_format("json", head, self.split.path)
        return len(head) if start is None else start

    def _walk(self, position: int | None) -> Iterator[Record | Damage]:
        """Yield the records and the damage that begin at or after a position."""
        window = self._window
        while position is not None:
            offset = window.skip(position)
            if not self._bare:
                offset = window.skip((yield from self._plain_records(offset)))
            char = window.slice(offset, offset + 1)
            if not char and self._bare and not self._stream.failure:
                break
            if not char:
                self.truncation = self._stream.failure or "unterminated-array"
                yield Damage(offset, 0, self.truncation, b"")
                break
            if char == b"]":
                position = yield from self._close(offset)
            elif record := self._record(offset):
                yield record
                position = offset + record.length
            else:
                position = yield from self._damage(offset)

    def _plain_records(self, offset: int) -> Generator[Record, None, int]:
        """Yield records up to the first element that needs care, and return that element's offset.

        A closing brace that seems to precede an element ends an object if the text up to it parses.
        """
        data, base = self._window.data, self._window.base
        start = brace = offset - base
        guesses = 0
        while guesses < _GUESSES and (brace := data.find(b"}", brace) + 1):
            follower = _NEXT.match(data, brace)
            if follower is None:
                continue
            raw = data[start:brace]
            try:
                value = orjson.loads(raw)
            except orjson.JSONDecodeError:
                guesses += 1
                continue
            if len(raw) > self._max_bytes:
                break
            yield Record(base + start, len(raw), exact_integers(value, raw), raw)
            start = brace = follower.end()
            guesses = 0
        return base + start

    def _record(self, offset: int) -> Record | None:
        """Return the object at `offset` if an element or the end of the array may follow it."""
        try:
            _, end, _ = self._window.value(offset, max_bytes=self._max_bytes)
        except RecursionError:
            end = self._deep_end(offset)
        if end is None or not self._is_element(offset, end):
            return None
        raw = self._window.slice(offset, end)
        value = parse_object(raw)
        return None if value is None else Record(offset, len(raw), value, raw)

    def _value(self, offset: int, *, before: str = "") -> tuple[Any, int | None, bool]:
        """Return the result of TextWindow.value, or (None, None, False) if nesting is too deep."""
        try:
            return self._window.value(offset, max_bytes=self._max_bytes, before=before)
        except RecursionError:
            return None, None, False

    def _deep_end(self, offset: int) -> int | None:
        """Return the probable end of the object at `offset` if orjson can read it; else None."""
        window = self._window
        window.load(offset, offset + self._max_bytes + REACH)
        ends = _OBJECT_END.finditer(window.data, offset - window.base)
        guesses = (window.base + each.start() + 1 for each in itertools.islice(ends, _GUESSES))
        return next((end for end in guesses if parse_object(window.slice(offset, end))), None)

    def _is_element(self, offset: int, end: int) -> bool:
        """Return whether [offset, end) has an allowed length and ends like an element.

        An element is followed by a comma, a closing bracket, a brace (if a comma was lost) or the
        end of the file.
        """
        self._window.load(offset, end + REACH)
        follower = self._window.slice(end, end + REACH).lstrip(_BLANKS)[:1]
        return end - offset <= self._max_bytes and follower in b",]{"

    def _is_good(self, offset: int) -> bool:
        window = self._window
        window.load(offset, offset + REACH + 2)
        before = window.slice(offset - REACH, offset).rstrip(_BLANKS)[-1:]
        if before not in self._before or not _BRACE_AND_KEY.match(
            window.data, offset - window.base
        ):
            return False
        value, end, _ = self._value(offset)
        if end is None or not self._is_element(offset, end):
            return False
        return not self._text_fields or not self._text_fields.isdisjoint(value)

    @property
    def _before(self) -> Sequence[bytes]:
        """The bytes that may precede a good object."""
        return (b"", b"}") if self._bare else (b",", b"[")

    def _next_good(self, offset: int) -> int | None:
        """Return the offset of the first good object at or after `offset`; None if there is none.

        If a brace does not begin a good object, the text after it is parsed in vain. Once
        _FREE_BYTES are parsed, the search skips a share of the parsed bytes, so that hostile text
        takes linear time.
        """
        window = self._window
        free = window.parsed_bytes + _FREE_BYTES
        while True:
            brace = _BRACE_AND_KEY.search(window.data, max(0, offset - window.base))
            if brace is None:
                # The key after a brace this close to the window's end may be outside the window.
                offset = max(offset, window.end - REACH - 1)
                if not window.more(offset):
                    return None
                continue
            offset = window.base + brace.start()
            before = window.parsed_bytes
            if self._is_good(offset):
                return offset
            looked = window.parsed_bytes - before
            offset += 1 if window.parsed_bytes < free else 1 + looked // _STRIDE

    def _close(self, offset: int) -> Generator[Damage, None, int | None]:
        """Skip the text after the array that ends at `offset`; return the offset to continue at.

        The remaining members of the enclosing object contain no records. Any other text before the
        end of the file is damage, up to the next good object, if there is one.
        """
        window, stream = self._window, self._stream
        offset = window.skip(offset + 1)
        raw = window.peek(offset, RAW_BYTES)
        if raw.startswith(b"}"):
            offset = window.skip(offset + 1)
        elif raw.startswith(b'"') and is_wrapped(self._head):
            members, end, is_cut = self._value(offset, before="{")
            self._check_members(members)
            if is_cut:
                self.truncation = stream.failure or "truncated"
                yield Damage(offset, stream.size - offset, self.truncation, raw)
                return None
            offset = offset if end is None else window.skip(end)
        if raw := window.peek(offset, RAW_BYTES):
            good = self._next_good(offset)
            length = (stream.size if good is None else good) - offset
            yield Damage(offset, length, "trailing-bytes", raw[:length])
            if good is not None:
                return good
        self.truncation = stream.failure
        if stream.failure:
            yield Damage(stream.size, 0, stream.failure, b"")
        return None

    def _check_members(self, members: Any) -> None:
        """Check that the object around the array is not a record and contains no other records.

        Raises:
            UserError: The object itself has a text field, or it has a second list of records.
        """
        fields = self._text_fields
        if not members or not fields or array_start(self._head) is not None:
            return
        lists = ((name, value) for name, value in members.items() if isinstance(value, list))
        more = [name for name, value in lists if any(_is_record(each, fields) for each in value)]
        if found := sorted([*more, *fields.intersection(members)]):
            raise UserError(
                f"The input {self.split.path} is an object with records in a list, and with "
                f"{found[0]!r} after that, which may be a text or hold records too. Write the "
                "records into a separate file, one per line, as in: "
                "jq -c '.KEY[]' FILE > NEW.jsonl"
            )

    def _damage(self, offset: int) -> Generator[Damage, None, int | None]:
        """Yield the damage that begins at `offset`; return its end, or None at the end of the file.

        The damage ends with the element if only its content is broken, else before the next good
        object.
        """
        window = self._window
        raw = window.peek(offset, RAW_BYTES)
        _, end, is_cut = self._value(offset)
        if end is not None and self._is_element(offset, end):
            whole = window.slice(offset, end)
            reason, raw = damage_reason(whole), whole[:WHOLE_BYTES]
        else:
            end = self._stream.size if is_cut else self._next_edge(offset)
            cut = end == self._stream.size and not (self._bare and self._is_closed(end))
            reason = self._guessed_reason(raw, end - offset, cut=cut)
        yield Damage(offset, end - offset, reason, raw[: end - offset])
        if reason not in ("truncated", self._stream.failure):
            return end
        self.truncation = reason
        return None

    def _is_closed(self, end: int) -> bool:
        return self._window.slice(end - REACH, end).rstrip(_BLANKS).endswith(b"}")

    def _guessed_reason(self, raw: bytes, length: int, *, cut: bool) -> Reason:
        """Return the reason for damage whose end had to be guessed."""
        if length > self._max_bytes:
            return "too-long"
        return (self._stream.failure or "truncated") if cut else damage_reason(raw[:length])

    def _next_edge(self, offset: int) -> int:
        """Return the end of the damage at `offset`, before the blanks and comma that follow it."""
        window = self._window
        edge = self._next_good(offset + 1)
        if edge is None:
            size = self._stream.size
            tail = window.slice(max(offset, size - REACH), size)
            end = _FILE_END.search(tail)
            if end is None:
                return size
            edge = size - len(tail) + end.start()
        before = window.slice(max(offset, edge - REACH), edge)
        return edge - len(before) + len(before.rstrip(_BLANKS).removesuffix(b",").rstrip(_BLANKS))


def _is_record(value: Any, text_fields: frozenset[str]) -> bool:
    return isinstance(value, dict) and not text_fields.isdisjoint(value)
