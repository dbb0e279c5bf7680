"""Reads the records of a JSON array, range by range, and loses only what is damaged.

A file is an array of objects, or an object whose key "RECORDS" holds one. Reading walks from
element to element, and each step depends only on the bytes of the file and the position in it:

    object             a record; go on after the comma that follows
    anything else      damage, up to the next good record or the end of the element
    closing bracket    the end; the other members of the object are passed over; text after that
                       is damage, up to the next good record in it

A range that begins inside the file starts at its first *good* record, and every range continues
past its end to the next good record. So neighbours agree about where one stops and the other
begins, damage or not, unless a nested array imitates records, which `split.seamless` detects.

A record is good if `[` or `,` stands before it, its first key follows its brace, it has a text
field, and `json_scan.parse_object` accepts it.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from functools import cached_property

import orjson

from pipelines.inputs.split import Link, Split
from pipelines.readers.file_head import (
    BOM,
    HEAD_BYTES,
    excerpt,
    foreign_format,
    other_encoding,
    read_head,
)
from pipelines.readers.json_scan import (
    BLANKS,
    MEMBER,
    NEXT,
    REACH,
    ScanWindow,
    balanced_end,
    diagnosis,
    element_end,
    parse_object,
    skip_value,
    structure,
    value_end,
)
from pipelines.readers.record import (
    BLOCK_BYTES,
    MAX_RECORD_BYTES,
    RAW_BYTES,
    Damage,
    Reason,
    Record,
)
from pipelines.readers.stream import ByteStream, open_stream
from shards.errors import UserError

_RECORDS = b'"RECORDS"'
_SCALAR = rb'(?:"(?:[^"\\]|\\.)*+"|[-+.0-9a-zA-Z]++)'
_FIELD = rb'"(?:[^"\\]|\\.)*+"\s*+:\s*+' + _SCALAR + rb"\s*+"
_OPENER = re.compile(rb"(?:\xef\xbb\xbf)?\s*+([\[{])")
_COMMA = re.compile(rb"\s*+,")
TAIL = re.compile(rb"\]\s*+(?:(?:,\s*+" + _FIELD + rb")*+\})?", re.S)
"""The end of the array and, if it stands in a plain object, the end of that."""

_BRACE_AND_KEY = re.compile(rb'\{[ \t\n\r]{0,%d}+"' % REACH)
_FREE_QUOTES = 4 << 20
_STRIDE = 4


class JsonArrayReader:
    """Iterates over the records of one split; iterated to its end, it knows `link` and `crc32c`.

    Memory holds the window that it reads through: a block and a record, or, while it looks for the
    end of damage, twice the longest record allowed.
    """

    def __init__(
        self,
        split: Split,
        *,
        text_fields: Sequence[str],
        max_record_bytes: int = MAX_RECORD_BYTES,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        """Make a reader.

        Args:
            split: The range to read.
            text_fields: Reading starts only at an object with one of these. Objects without them
                are records too.
            max_record_bytes: A longer object is damage.
            block_bytes: How much is read at a time.
        """
        self.link: Link | None = None
        """Where the reading began and stopped."""
        self.crc32c: int | None = None
        """Checksum of the bytes [split.start, split.end) of the file as stored."""
        self._split = split
        self._text_fields = frozenset(text_fields)
        self._max_bytes = max_record_bytes
        self._block_bytes = block_bytes
        self._reported = False
        self._stream: ByteStream
        self._window: ScanWindow

    @property
    def done(self) -> int:
        """Return how many bytes of the split have been read so far; valid during iteration."""
        return self._stream.done

    def __iter__(self) -> Iterator[Record | Damage]:
        """Yield what the split holds, in the order of the file.

        That is everything from the first good record of the range on (for the first split of a
        file: from its first element on) up to the first good record at or after its end.

        Raises:
            UserError: The file cannot be read, has changed since it was cut into splits, or holds
                no array.
        """
        start = self._split.start
        with open_stream(self._split, offset=max(0, start - REACH)) as self._stream:
            self._window = ScanWindow(self._stream, floor=start, block_bytes=self._block_bytes)
            first = yield from self._start()
            stop = None if first is None else (yield from self._walk(first))
            if self._stream.failure and not self._reported:
                yield Damage(self._stream.size, 0, self._stream.failure, b"")
            if stop is not None and stop == self._stream.size:
                stop = self._split.file_bytes
            self.link = Link(end=self._split.end, first=first, next=stop)
            self.crc32c = self._stream.crc32c
            del self._window

    def _start(self) -> Generator[Damage, None, int | None]:
        """Return where reading begins; if the file ends before that, yield the damage first."""
        if self._split.start:
            return self._find_good(self._split.start, self._split.end, forget=True)
        self._window.load(HEAD_BYTES)
        head = self._window.data
        start = array_start(head)
        if start is not None:
            return start
        if not self._stream.failure:
            raise _no_array(head, self._split.path)
        yield Damage(0, len(head), self._end_reason("truncated"), head[:RAW_BYTES])
        return len(head)

    def _walk(self, offset: int) -> Generator[Record | Damage, None, int]:
        """Yield the elements from `offset` on and return where the reading stops."""
        position: int | None = offset
        while position is not None:
            offset = self._window.skip(position, BLANKS + b",")
            offset = yield from self._plain_records(offset)
            self._window.floor = offset
            if offset == self._stream.size:
                if not self._reported:
                    yield Damage(offset, 0, self._end_reason("unterminated-array"), b"")
                break
            if offset >= self._stream.end and self._check_good(offset)[0]:
                return offset
            position = yield from self._element(offset)
        return self._stream.size

    def _plain_records(self, offset: int) -> Generator[Record, None, int]:
        """Yield the records in the window up to the first difficulty; return where that is."""
        data, base = self._window.data, self._window.base
        start = brace = offset - base
        stop = min(self._stream.end - base, len(data))
        while start < stop and (brace := data.find(b"}", brace) + 1):
            follower = NEXT.match(data, brace)
            if follower is None:
                continue
            raw = data[start:brace]
            try:
                value = orjson.loads(raw)
            except orjson.JSONDecodeError:
                break
            if brace - start > self._max_bytes:
                break
            yield Record(base + start, len(raw), value, raw)
            start = brace = follower.end()
        return base + start

    def _element(self, offset: int) -> Generator[Record | Damage, None, int | None]:
        """Yield the element at `offset` and return where it ends; None if the file ends there."""
        char = self._window.slice(offset, offset + 1)
        if char == b"]":
            return (yield from self._close(offset))
        if char == b"{":
            value, end = parse_object(self._window, offset, max_bytes=self._max_bytes)
            if value is not None:
                yield Record(offset, end - offset, value, self._window.slice(offset, end))
                return end
        return (yield from self._damage(offset))

    def _close(self, offset: int) -> Generator[Damage, None, int | None]:
        """Yield what follows the closing bracket at `offset`, as damage; return where to go on."""
        self._window.load(offset + RAW_BYTES)
        tail = TAIL.match(self._window.data, offset - self._window.base)
        offset = self._window.skip(offset + len(tail[0]) if tail else offset, BLANKS)
        if self._at(offset) == b"," and self._is_wrapped:
            return (yield from self._members(offset))
        return (yield from self._trailing(offset))

    def _trailing(self, offset: int) -> Generator[Damage, None, int | None]:
        """Yield what begins at `offset`, after the end of all, as damage; return where to go on."""
        if offset == self._stream.size:
            return None
        raw = self._first_bytes(offset)
        return (yield from self._outside(offset, offset, raw))

    def _outside(self, offset: int, looked: int, raw: bytes) -> Generator[Damage, None, int | None]:
        """Yield the damage outside of arrays that begins at `offset` and lasts beyond `looked`."""
        good = self._find_good(looked, self._stream.size, forget=True)
        end = self._stream.size if good is None else good
        yield Damage(offset, end - offset, "trailing-bytes", raw[: end - offset])
        return good

    def _members(self, offset: int) -> Generator[Damage, None, int | None]:
        """Pass over the members that follow the array in its object; return where to go on.

        They are no records, except those of another array "RECORDS". What is broken is damage.

        Args:
            offset: Where the comma stands.
        """
        window = self._window
        while self._at(offset) == b",":
            raw = self._first_bytes(offset)
            member = MEMBER.match(window.data, offset + 1 - window.base)
            if member is None:
                break
            begin, offset = offset, window.base + member.end()
            if member["rest"] is not None:
                if member["key"] == _RECORDS and self._at(offset) == b"[":
                    return offset + 1
                complete, offset = skip_value(window, offset)
                if not complete and offset == self._stream.size:
                    yield Damage(begin, offset - begin, self._end_reason("truncated"), raw)
                    return None
                if not complete:
                    return (yield from self._outside(begin, offset, raw))
            offset = window.skip(offset, BLANKS)
        if self._at(offset) == b"}":
            offset = window.skip(offset + 1, BLANKS)
        return (yield from self._trailing(offset))

    @cached_property
    def _is_wrapped(self) -> bool:
        """Whether the file is an object that holds the array."""
        return read_head(self._split.path).removeprefix(BOM).lstrip().startswith(b"{")

    def _at(self, offset: int) -> bytes:
        self._window.load(offset + 1)
        return self._window.slice(offset, offset + 1)

    def _damage(self, offset: int) -> Generator[Damage, None, int | None]:
        """Yield the damage that begins at `offset`; return where it ends, None for the file's end.

        It ends with the element, or before the next good record if that comes first. An element
        longer than the longest record allowed ends only before a good record.
        """
        raw = self._first_bytes(offset)
        near = min(offset + self._max_bytes, self._stream.size)
        good = self._find_good(offset + 1, near, forget=False)
        if good is not None and (found := self._enclosing(offset, good, near)):
            yield found._replace(raw=raw[: found.length])
            return None if offset + found.length == self._stream.size else offset + found.length
        end = element_end(self._window, offset, limit=near if good is None else good)
        reason = None if end is None else diagnosis(self._window.slice(offset, end))
        if end is None:
            if good is None:
                good = self._find_good(near, self._stream.size, forget=True)
            end = self._stream.size if good is None else self._end_before(good)
            reason = self._guessed_reason(offset, end, cut=good is None)
        yield Damage(offset, end - offset, reason or "bad-json", raw[: end - offset])
        return None if end == self._stream.size else end

    def _enclosing(self, offset: int, good: int, near: int) -> Damage | None:
        """Return the damaged element at `offset` that has a good record inside, without its bytes.

        None if the record does not plainly stand inside: then it is one of its own.
        """
        window = self._window
        if structure(window.slice(offset, good + 1)) != "begun":
            return None
        complete, end = balanced_end(window, offset, limit=near)
        if not complete and end < self._stream.size:
            return None
        kind = structure(window.slice(offset, end))
        if complete:
            window.load(end + REACH)
            if kind != "whole" or window.slice(end, end + REACH).lstrip(BLANKS)[:1] not in b",]":
                return None
            return Damage(offset, end - offset, diagnosis(window.slice(offset, end)), b"")
        if kind == "broken":
            return None
        return Damage(offset, end - offset, self._end_reason("truncated"), b"")

    def _guessed_reason(self, offset: int, end: int, *, cut: bool) -> Reason:
        """Return what is wrong with a stretch whose end had to be guessed."""
        if end - offset > self._max_bytes:
            return "too-long"
        return self._end_reason("truncated") if cut else diagnosis(self._window.slice(offset, end))

    def _end_reason(self, reason: Reason) -> Reason:
        """Return why the file ends too early: the archive's failure, or else `reason`."""
        self._reported = True
        return self._stream.failure or reason

    def _first_bytes(self, offset: int) -> bytes:
        self._window.load(offset + RAW_BYTES)
        return self._window.slice(offset, offset + RAW_BYTES)

    def _end_before(self, offset: int) -> int:
        """Return where the element before `offset` ends: before blanks and at most one comma."""
        before = self._window.slice(offset - REACH, offset)
        return offset - len(before) + len(before.rstrip(BLANKS).removesuffix(b",").rstrip(BLANKS))

    def _find_good(self, offset: int, stop: int, *, forget: bool) -> int | None:
        """Return the first good record in [at, stop), or None.

        A brace that begins no record costs time, mostly by the quotes looked at after it; some 256
        other bytes cost as much. Beyond _FREE_QUOTES the search skips a share of what was looked at
        after each brace, so that even hostile text is passed in linear time.
        """
        spent = 0
        while offset < stop:
            if forget:
                self._window.floor = offset
            brace = _BRACE_AND_KEY.search(self._window.data, offset - self._window.base)
            if brace is None:
                # A brace this close to the end of the window may have its key after that.
                offset = max(offset, self._window.end - REACH - 1)
                if not self._window.more():
                    break
                continue
            offset = self._window.base + brace.start()
            if offset >= stop:
                break
            good, reached = self._check_good(offset)
            if good:
                return offset
            looked = self._window.slice(offset, reached)
            spent += looked.count(b'"') + len(looked) // 256
            offset += 1 if spent < _FREE_QUOTES else 1 + len(looked) // _STRIDE
        return None

    def _check_good(self, offset: int) -> tuple[bool, int]:
        """Return whether a good record begins at `offset`, and the end of the bytes looked at."""
        window = self._window
        window.load(offset + REACH + 2)
        before = window.slice(offset - REACH, offset).rstrip(BLANKS)[-1:]
        if before not in (b",", b"[") or not _BRACE_AND_KEY.match(
            window.data, offset - window.base
        ):
            return False, offset
        value, reached = parse_object(window, offset, max_bytes=self._max_bytes)
        if value is None:
            return False, reached
        return not self._text_fields or not self._text_fields.isdisjoint(value), reached


def check_array(head: bytes, path: str) -> None:
    """Check that a file begins as an array of objects, bare or under the key "RECORDS".

    Args:
        head: Its first HEAD_BYTES, unpacked.
        path: Where it is.

    Raises:
        UserError: It does not; the message says what it is instead.
    """
    start = array_start(head)
    if start is None:
        raise _no_array(head, path)
    elements = head[start:].lstrip()
    if elements[:1] in b"{]" or re.search(rb"\{\s*\"", elements):
        return
    raise UserError(
        f"The input {path} is a JSON array, but not of objects: its first element begins with "
        f'{excerpt(elements)}. Expected was [{{"title": ..., "content": ...}}, ...].'
    )


def array_start(head: bytes) -> int | None:
    """Return the offset of the array's first element, or of the blanks before it.

    None if no array begins in `head`, bare or under the key "RECORDS".
    """
    opener = _OPENER.match(head)
    if opener is None or opener[1] == b"[":
        return opener and opener.end()
    offset = opener.end()
    while member := MEMBER.match(head, offset):
        complete, offset = True, member.end()
        if member["rest"] is not None:
            if member["key"] == _RECORDS and head.startswith(b"[", offset):
                return offset + 1
            complete, offset = value_end(head, offset, len(head))
        comma = _COMMA.match(head, offset)
        if not (complete and comma):
            break
        offset = comma.end()
    return None


def _no_array(head: bytes, path: str) -> UserError:
    return UserError(
        f"The input {path} holds no JSON array of objects: {_description(head)}. Expected was "
        '[{...}, ...] or {"RECORDS": [{...}, ...]}, in UTF-8.'
    )


def _description(head: bytes) -> str:
    foreign = foreign_format(head)
    if foreign:
        return foreign
    if encoding := other_encoding(head):
        return f"it is not UTF-8 and reads as {encoding} does, so convert it first"
    if re.match(rb"\s*\{.*\}\s*\n\s*\{", head):
        return "it has one object per line (JSON lines)"
    if re.match(rb"\s*\{", head):
        return f'it is an object without the key "RECORDS" near its start: {excerpt(head)}'
    return f"it begins with {excerpt(head)}"
