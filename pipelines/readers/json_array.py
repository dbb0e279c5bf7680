"""Reads the records of a JSON array, range by range, and loses no more than what is damaged.

A file is an array of objects, or an object whose key "RECORDS" holds one. Reading is a walk from
element to element, and each step depends on the bytes of the file and the position alone:

    object at p        a record; on to what follows its comma
    anything else      damage, up to the next good record or the end of the element
    closing bracket    the end, or damage if text follows; on to the next good record in it

A range that begins inside the file starts at its first *good* record, and every range goes on,
past its end, to the next good record. So neighbours agree about where one stops and the other
begins, damage or not, unless a nested array imitates records; `sources.seamless` tells.

A record is good when `[` or `,` stands before it, its first key follows its brace, it has a text
field, and `json_scan.parse_object` accepts it.
"""

import re
from collections.abc import Generator, Iterator, Sequence

import orjson

from pipelines.inputs.split import Link, Split
from pipelines.readers.json_frame import HEAD_BYTES, TAIL, array_start, no_array
from pipelines.readers.json_scan import (
    BLANKS,
    NEXT,
    REACH,
    ScanWindow,
    diagnosis,
    element_end,
    parse_object,
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

_BRACE_AND_KEY = re.compile(rb'\{[ \t\n\r]{0,%d}+"' % REACH)
_FREE_QUOTES = 4 << 20
_STRIDE = 4


class JsonArrayReader:
    """Iterates over the records of one split; iterated to its end, it knows `link` and `crc32c`.

    It holds the window that it reads through: a block and a record, or, while it looks for the
    end of damage, two of the longest records allowed.
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
            text_fields: An object needs one of these for a reading to start at it. It is a record
                without them too.
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
        self._told = False
        self._stream: ByteStream
        self._window: ScanWindow

    @property
    def done(self) -> int:
        """Return how much of the split has been read so far; asked while it is read."""
        return self._stream.done

    def __iter__(self) -> Iterator[Record | Damage]:
        """Yield what the split holds, in the order of the file.

        That is what begins at or after the first good record of the range (for the first split of
        a file: its first element), and before the first good record at or after its end.

        Raises:
            UserError: The file cannot be read, changed since it was cut into splits, or holds no
                array.
        """
        start = self._split.start
        with open_stream(self._split, at=max(0, start - REACH)) as self._stream:
            self._window = ScanWindow(self._stream, floor=start, block_bytes=self._block_bytes)
            first = yield from self._first()
            stop = None if first is None else (yield from self._walk(first))
            if self._stream.failure and not self._told:
                yield Damage(self._stream.size, 0, self._stream.failure, b"")
            if stop is not None and stop == self._stream.size:
                stop = self._split.file_bytes
            self.link = Link(end=self._split.end, first=first, next=stop)
            self.crc32c = self._stream.crc32c
            del self._window

    def _first(self) -> Generator[Damage, None, int | None]:
        """Return where the reading begins, after yielding the damage of a file that ends before."""
        if self._split.start:
            return self._search(self._split.start, self._split.end, forget=True)
        self._window.load(HEAD_BYTES)
        head = self._window.data
        start = array_start(head)
        if start is not None:
            return start
        if not self._stream.failure:
            raise UserError(no_array(head, self._split.path))
        yield Damage(0, len(head), self._cut_off("truncated"), head[:RAW_BYTES])
        return len(head)

    def _walk(self, at: int) -> Generator[Record | Damage, None, int]:
        """Yield the elements from `at` on and return where the split's part of the file ends."""
        position: int | None = at
        while position is not None:
            at = self._window.skip(position, BLANKS + b",")
            at = yield from self._plain_records(at)
            self._window.floor = at
            if at == self._stream.size:
                if not self._told:
                    yield Damage(at, 0, self._cut_off("unterminated-array"), b"")
                break
            if at >= self._stream.end and self._good(at)[0]:
                return at
            position = yield from self._element(at)
        return self._stream.size

    def _plain_records(self, at: int) -> Generator[Record, None, int]:
        """Yield records as long as all is well and in the window; return where that ends."""
        data, base = self._window.data, self._window.base
        start = brace = at - base
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

    def _element(self, at: int) -> Generator[Record | Damage, None, int | None]:
        """Yield the element at `at` and return where it ends; None where the file does."""
        char = self._window.slice(at, at + 1)
        if char == b"]":
            return (yield from self._close(at))
        if char == b"{":
            value, end = parse_object(self._window, at, max_bytes=self._max_bytes)
            if value is not None:
                yield Record(at, end - at, value, self._window.slice(at, end))
                return end
        return (yield from self._mend(at))

    def _close(self, at: int) -> Generator[Damage, None, int | None]:
        """Yield what wrongly follows the closing bracket at `at`; return where reading goes on."""
        self._window.load(at + RAW_BYTES)
        tail = TAIL.match(self._window.data, at - self._window.base)
        at = self._window.skip(at + len(tail[0]) if tail else at, BLANKS)
        if at == self._stream.size:
            return None
        raw = self._raw(at)
        good = self._search(at, self._stream.size, forget=True)
        end = self._stream.size if good is None else good
        yield Damage(at, end - at, "trailing-bytes", raw[: end - at])
        return good

    def _mend(self, at: int) -> Generator[Damage, None, int | None]:
        """Yield the damage that begins at `at` and return where it ends; None where the file does.

        It ends before the next good record, or with the element where that comes first. Elements
        longer than the longest record are given up: only a good record ends them.
        """
        raw = self._raw(at)
        near = min(at + self._max_bytes, self._stream.size)
        good = self._search(at + 1, near, forget=False)
        end = element_end(self._window, at, limit=near if good is None else good)
        reason = None if end is None else diagnosis(self._window.slice(at, end))
        if end is None:
            if good is None:
                good = self._search(near, self._stream.size, forget=True)
            end = self._stream.size if good is None else self._before(good)
            reason = self._lost(at, end, cut=good is None)
        yield Damage(at, end - at, reason or "bad-json", raw[: end - at])
        return None if end == self._stream.size else end

    def _lost(self, at: int, end: int, *, cut: bool) -> Reason:
        """Return what is wrong with a stretch whose end had to be guessed."""
        if end - at > self._max_bytes:
            return "too-long"
        return self._cut_off("truncated") if cut else diagnosis(self._window.slice(at, end))

    def _cut_off(self, reason: Reason) -> Reason:
        """Return why the file ends here: the archive's failure, or else the reason given."""
        self._told = True
        return self._stream.failure or reason

    def _raw(self, at: int) -> bytes:
        self._window.load(at + RAW_BYTES)
        return self._window.slice(at, at + RAW_BYTES)

    def _before(self, at: int) -> int:
        """Return the offset behind the element before `at`: blanks and one comma taken off."""
        before = self._window.slice(at - REACH, at)
        return at - len(before) + len(before.rstrip(BLANKS).removesuffix(b",").rstrip(BLANKS))

    def _search(self, at: int, stop: int, *, forget: bool) -> int | None:
        """Return the first good record in [at, stop), or None.

        Braces that begin no record cost time, mostly by the quotes that were looked at; some 256
        other bytes cost as much. Beyond _FREE_QUOTES the search passes over a share of what each
        brace made it look at, so that even text made to deceive is left in linear time.
        """
        spent = 0
        while at < stop:
            if forget:
                self._window.floor = at
            brace = _BRACE_AND_KEY.search(self._window.data, at - self._window.base)
            if brace is None:
                # A brace so near the end of the window may have its key behind it.
                at = max(at, self._window.end - REACH - 1)
                if not self._window.more():
                    break
                continue
            at = self._window.base + brace.start()
            if at >= stop:
                break
            good, reached = self._good(at)
            if good:
                return at
            looked = self._window.slice(at, reached)
            spent += looked.count(b'"') + len(looked) // 256
            at += 1 if spent < _FREE_QUOTES else 1 + len(looked) // _STRIDE
        return None

    def _good(self, at: int) -> tuple[bool, int]:
        """Return whether a good record begins at `at`, and the offset up to which was looked."""
        window = self._window
        window.load(at + REACH + 2)
        before = window.slice(at - REACH, at).rstrip(BLANKS)[-1:]
        if before not in (b",", b"[") or not _BRACE_AND_KEY.match(window.data, at - window.base):
            return False, at
        value, reached = parse_object(window, at, max_bytes=self._max_bytes)
        if value is None:
            return False, reached
        return not self._text_fields or not self._text_fields.isdisjoint(value), reached
