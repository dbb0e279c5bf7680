"""JSON values found in a window that slides over a file.

JSON objects are self-delimiting: of all the prefixes of a text at most one is an object. So the
end of an object may be guessed cheaply, and a guess that parses is the end. What guessing does
not find is found by counting brackets outside strings, in linear time.
"""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import orjson

from pipelines.readers.record import Reason
from pipelines.readers.stream import ByteStream

BLANKS = b" \t\n\r"
REACH = 4096
"""How many blanks may stand beside an object without hiding what comes before or after them."""

NEXT = re.compile(rb"[ \t\n\r]*+(?:,[ \t\n\r]*+(?=\{)|(?=\]))")
"""What follows an object in an array of objects, up to the next element or the closing bracket."""

_RUN = {separators: re.compile(rb"[%s]*+" % separators) for separators in (BLANKS, BLANKS + b",")}
_STRUCTURE = re.compile(rb'["{}\[\]]')
_EDGE = re.compile(rb'["{}\[\],]')
_CLOSERS = {ord("{"): ord("}"), ord("["): ord("]")}
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_GUESSES = 8
_MAX_DEPTH = 1024
"""orjson refuses deeper values."""
_BEYOND_BYTES = 1 << 16
"""Size of the first block read behind the end of a split."""


class ScanWindow:
    """The bytes [base, base + len(data)) of a file; offsets are offsets in the file.

    It grows at its end and forgets what lies more than REACH before `floor`.
    """

    def __init__(self, stream: ByteStream, *, floor: int, block_bytes: int) -> None:
        self.data = b""
        self.base = stream.at
        self.floor = floor
        self._stream = stream
        self._block_bytes = block_bytes

    @property
    def end(self) -> int:
        """Return the offset behind the last byte held."""
        return self.base + len(self.data)

    def more(self) -> bool:
        """Read on and return True, or return False at the end of the file.

        Blocks grow with what is held, so that looking again from the start after each is linear.
        """
        at = self.end
        block_bytes = self._block_bytes
        if at >= self._stream.end:
            block_bytes = min(block_bytes, _BEYOND_BYTES)
        held = self.data[max(0, self.floor - REACH - self.base) :]
        block = self._stream.read(max(block_bytes, len(held) // 2))
        if block:
            self.data = held + block
            self.base = at - len(held)
        return bool(block)

    def load(self, end: int) -> None:
        """Hold the bytes up to `end`, as far as the file goes."""
        while self.end < end and self.more():
            pass

    def skip(self, at: int, separators: bytes) -> int:
        """Return where the run of separators at `at` ends, and forget what lies before it."""
        while True:
            self.floor = at
            run = _RUN[separators].match(self.data, at - self.base)
            at = self.base + (run.end() if run else 0)
            if at < self.end or not self.more():
                self.floor = at
                return at

    def slice(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), as far as they are held."""
        return self.data[max(0, start - self.base) : max(0, end - self.base)]

    def object(self, start: int, end: int) -> dict[str, Any] | None:
        """Return the JSON object that is [start, end), or None when there is no such."""
        try:
            value = orjson.loads(memoryview(self.data)[start - self.base : end - self.base])
        except orjson.JSONDecodeError:
            return None
        return value if isinstance(value, dict) else None


def parse_object(
    window: ScanWindow, at: int, *, max_bytes: int
) -> tuple[dict[str, Any], int] | tuple[None, int]:
    """Return the object at `at` and its end, or None and the offset up to which it was looked for.

    An object counts when it is no longer than `max_bytes` and a comma, a closing bracket, a brace
    (a lost comma) or the end of the file follows it, blanks aside.
    """
    limit, end = at + max_bytes, at
    for end in itertools.islice(_likely_ends(window, at, limit=limit), _GUESSES):
        value = window.object(at, end)
        if value is not None:
            return value, end
    found, reached = _balanced_end(window, at, limit=limit)
    if found:
        window.load(reached + REACH)
        follower = window.slice(reached, reached + REACH).lstrip(BLANKS)[:1]
        value = window.object(at, reached) if follower in b",]{" else None
        if value is not None:
            return value, reached
    return None, max(end, reached)


def element_end(window: ScanWindow, at: int, *, limit: int) -> int | None:
    """Return where the array element at `at` ends, blanks taken off, or None when that is unclear.

    It ends before the first comma or closing bracket that no string and no bracket encloses. What
    is between need be no valid JSON. Only bytes that the window holds are looked at.
    """
    data, start = window.data, at - window.base
    limit -= window.base
    while edge := _EDGE.search(data, start, limit):
        if edge[0] in b",]":
            return at + len(window.slice(at, window.base + edge.start()).rstrip(BLANKS))
        found, start = _value_end(data, edge.start(), limit)
        if not found:
            return None
    return None


def diagnosis(damaged: bytes) -> Reason:
    """Return what is wrong with the bytes of an element, which is no object."""
    try:
        damaged.decode()
    except UnicodeDecodeError:
        return "bad-utf8"
    if damaged.startswith(b"{"):
        return "bad-json"
    try:
        orjson.loads(damaged)
    except orjson.JSONDecodeError:
        return "bad-json"
    return "not-an-object"


def _likely_ends(window: ScanWindow, at: int, *, limit: int) -> Iterator[int]:
    """Yield the ends of braces that look as if the next element followed them."""
    while at < limit:
        brace = window.data.find(b"}", at - window.base)
        if brace < 0:
            at = window.end
            if not window.more():
                return
            continue
        at = window.base + brace + 1
        window.load(at + REACH)
        if at <= limit and NEXT.match(window.data, at - window.base):
            yield at


def _balanced_end(window: ScanWindow, at: int, *, limit: int) -> tuple[bool, int]:
    """Return whether the value at `at` ends, and where; if not, how far was looked."""
    while True:
        last = min(window.end, limit)
        found, reached = _value_end(window.data, at - window.base, last - window.base)
        reached += window.base
        if found or reached < last or last == limit or not window.more():
            return found, reached


def _value_end(data: bytes, start: int, limit: int) -> tuple[bool, int]:
    """Return whether the string, object or array at `start` ends before `limit`, and where.

    If not: where the brackets went wrong, or `limit`.
    """
    closers: list[int] = []
    while mark := _STRUCTURE.search(data, start, limit):
        start = mark.end()
        char = data[start - 1]
        if char == _QUOTE:
            start = _string_end(data, start, limit)
            if start < 0:
                return False, limit
        elif char in _CLOSERS and len(closers) < _MAX_DEPTH:
            closers.append(_CLOSERS[char])
        elif not closers or closers.pop() != char:
            return False, start
        if not closers:
            return True, start
    return False, limit


def _string_end(data: bytes, start: int, limit: int) -> int:
    """Return the end of the string whose characters begin at `start`; -1 if it is not there."""
    while (quote := data.find(b'"', start, limit)) >= 0:
        escape = quote
        while escape > start and data[escape - 1] == _BACKSLASH:
            escape -= 1
        start = quote + 1
        if (quote - escape) % 2 == 0:
            return start
    return -1
