"""Finds JSON values in a window that slides over a file.

JSON objects are self-delimiting: at most one prefix of a text is an object. So the end of an
object may be guessed cheaply, and a guess that parses is the end. Where guessing fails, the end is
found by counting brackets outside strings, in linear time.
"""

import itertools
import re
from collections.abc import Iterator
from typing import Any, Literal

import orjson

from pipelines.readers.record import Reason
from pipelines.readers.salvage import DEEPEST, MAX_DEPTH, salvage
from pipelines.readers.stream import ByteStream

BLANKS = b" \t\n\r"
REACH = 4096
"""How many blanks beside an object are looked past for what comes before or after it."""

NEXT = re.compile(rb"[ \t\n\r]*+(?:,[ \t\n\r]*+(?=\{)|(?=\]))")
"""What stands between an object in an array and the next object or the closing bracket."""

_LIKELY = re.compile(
    rb"[ \t\n\r]*+(?:,[ \t\n\r]*+(?=\{)|\][ \t\n\r]*+(?:[^\]},]|(?:\}[ \t\n\r]*+)?+\Z))"
)
"""The same, without brackets that seem to close an array inside an object."""

MEMBER = re.compile(
    rb'[ \t\n\r]*+(?P<key>"(?:[^"\\]|\\.)*+")[ \t\n\r]*+:[ \t\n\r]*+'
    rb'(?:(?P<rest>(?=["\[{]))|[-+.0-9a-zA-Z]++)',
    re.DOTALL,
)
"""A member of an object: its key and its value, or, as `rest`, that this is still to come."""

_RUN = {separators: re.compile(rb"[%s]*+" % separators) for separators in (BLANKS, BLANKS + b",")}
_STRUCTURE = re.compile(rb'["{}\[\]]')
_EDGE = re.compile(rb'["{}\[\],]')
_PLAIN = re.compile(rb'(?P<string>"(?:[^"\\]|\\.)*+(?P<end>")?+\\?+)|[^\s{}\[\],:"]++', re.DOTALL)
_CHARACTERS = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_CLOSERS = {ord("{"): ord("}"), ord("["): ord("]")}
_QUOTE, _BACKSLASH = ord('"'), ord("\\")
_GUESSES = 8
_BEYOND_BYTES = 1 << 16
"""Size of the first block read past the end of a split."""


class ScanWindow:
    """The bytes [base, base + len(data)) of a file; offsets are offsets in the file.

    It grows at its end and forgets what lies more than REACH before `floor`.
    """

    def __init__(self, stream: ByteStream, *, floor: int, block_bytes: int) -> None:
        self.data = b""
        self.base = stream.offset
        self.floor = floor
        self._stream = stream
        self._block_bytes = block_bytes

    @property
    def end(self) -> int:
        """Return the offset after the last byte held."""
        return self.base + len(self.data)

    def more(self) -> bool:
        """Read on and return True, or return False at the end of the file.

        Blocks grow with what is held, so that searching it again after each block stays linear.
        """
        offset = self.end
        block_bytes = self._block_bytes
        if offset >= self._stream.end:
            block_bytes = min(block_bytes, _BEYOND_BYTES)
        held = self.data[max(0, self.floor - REACH - self.base) :]
        block = self._stream.read(max(block_bytes, len(held) // 2))
        if block:
            self.data = held + block
            self.base = offset - len(held)
        return bool(block)

    def load(self, end: int) -> None:
        """Read until the bytes up to `end`, or to the end of the file, are held."""
        while self.end < end and self.more():
            pass

    def skip(self, offset: int, separators: bytes) -> int:
        """Return where the run of separators at `offset` ends, and forget what lies before it."""
        while True:
            self.floor = offset
            run = _RUN[separators].match(self.data, offset - self.base)
            offset = self.base + (run.end() if run else 0)
            if offset < self.end or not self.more():
                self.floor = offset
                return offset

    def slice(self, start: int, end: int) -> bytes:
        """Return those of the bytes [start, end) that are held."""
        return self.data[max(0, start - self.base) : max(0, end - self.base)]

    def object(self, start: int, end: int) -> dict[str, Any] | None:
        """Return the JSON object that the bytes [start, end) are, or None if they are none."""
        try:
            value = orjson.loads(memoryview(self.data)[start - self.base : end - self.base])
        except orjson.JSONDecodeError as error:
            return salvage(self.slice(start, end), error)
        return value if isinstance(value, dict) else None


def parse_object(
    window: ScanWindow, offset: int, *, max_bytes: int
) -> tuple[dict[str, Any], int] | tuple[None, int]:
    """Return the object at `offset` and its end, or None and the end of the bytes looked at.

    An object counts if it is no longer than `max_bytes` and a comma, a closing bracket, a brace
    (a lost comma) or the end of the file follows it, blanks aside.
    """
    limit, end = offset + max_bytes, offset
    for end in itertools.islice(_likely_ends(window, offset, limit=limit), _GUESSES):
        value = window.object(offset, end)
        if value is not None:
            return value, end
    complete, reached = balanced_end(window, offset, limit=limit)
    if complete:
        window.load(reached + REACH)
        follower = window.slice(reached, reached + REACH).lstrip(BLANKS)[:1]
        value = window.object(offset, reached) if follower in b",]{" else None
        if value is not None:
            return value, reached
    return None, max(end, reached)


def element_end(window: ScanWindow, offset: int, *, limit: int) -> int | None:
    """Return where the array element at `offset` ends, without blanks, or None if that is unclear.

    It ends before the first comma or closing bracket that no string and no bracket encloses. The
    bytes before that need not be valid JSON. Only bytes that the window holds are looked at.
    """
    data, start = window.data, offset - window.base
    limit -= window.base
    while edge := _EDGE.search(data, start, limit):
        if edge[0] in b",]":
            return offset + len(window.slice(offset, window.base + edge.start()).rstrip(BLANKS))
        complete, start = value_end(data, edge.start(), limit)
        if not complete:
            return None
    return None


def skip_value(window: ScanWindow, offset: int) -> tuple[bool, int]:
    """Return whether the JSON value at `offset` is complete, and where; forget all before that.

    If it is not: where its brackets stop matching, or the end of the file. Only strings and
    brackets are looked at.
    """
    closers = bytearray()
    while mark := _next_mark(window, offset):
        offset, char = window.base + mark.end(), mark[0][0]
        if char == _QUOTE:
            complete, offset = _skip_string(window, offset)
            if not complete:
                return False, offset
        elif char in _CLOSERS and len(closers) < DEEPEST:
            closers.append(_CLOSERS[char])
        elif not closers or closers.pop() != char:
            return False, offset
        if not closers:
            return True, offset
    return False, window.end


def _next_mark(window: ScanWindow, offset: int) -> re.Match[bytes] | None:
    """Return the next quote or bracket; None at the end of the file."""
    window.floor = offset
    while not (mark := _STRUCTURE.search(window.data, offset - window.base)):
        offset = window.floor = window.end
        if not window.more():
            return None
    return mark


def _skip_string(window: ScanWindow, offset: int) -> tuple[bool, int]:
    """Return whether the string whose characters begin at `offset` has an end, and where."""
    while True:
        run = _CHARACTERS.match(window.data, offset - window.base)
        offset = window.base + (run.end() if run else 0)
        window.floor = offset
        if window.slice(offset, offset + 1) == b'"':
            return True, offset + 1
        if not window.more():
            return False, window.end


def structure(raw: bytes) -> Literal["whole", "begun", "string", "broken"]:
    """Return whether brackets, commas and colons stand as in a JSON value, whatever is between.

    A lost quote, bracket or comma breaks the structure, and hardly anything else does.

    Returns:
        whole: They do. begun: As in the beginning of one. string: The same, and its last string has
        no end. broken: They do not.
    """
    bones = _PLAIN.sub(_bone, raw)
    try:
        orjson.loads(bones)
    except orjson.JSONDecodeError as error:
        if not error.msg.startswith("unexpected end of data"):
            return "broken"
        return "string" if bones.endswith(b"?") else "begun"
    return "whole"


def _bone(token: re.Match[bytes]) -> bytes:
    if not token["string"]:
        return b"0"
    return b'""' if token["end"] else b'"?'


def diagnosis(damaged: bytes) -> Reason:
    """Return what is wrong with the bytes of an element that is not an object."""
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


def _likely_ends(window: ScanWindow, offset: int, *, limit: int) -> Iterator[int]:
    """Yield where closing braces end after which the next element seems to begin."""
    while offset < limit:
        brace = window.data.find(b"}", offset - window.base)
        if brace < 0:
            offset = window.end
            if not window.more():
                return
            continue
        offset = window.base + brace + 1
        window.load(offset + REACH)
        if offset <= limit and _LIKELY.match(window.data, offset - window.base):
            yield offset


def balanced_end(window: ScanWindow, offset: int, *, limit: int) -> tuple[bool, int]:
    """Return whether the value at `offset` ends before `limit`, and where looking at it ended."""
    while True:
        last = min(window.end, limit)
        complete, reached = value_end(window.data, offset - window.base, last - window.base)
        reached += window.base
        if complete or reached < last or last == limit or not window.more():
            return complete, reached


def value_end(data: bytes, start: int, limit: int) -> tuple[bool, int]:
    """Return whether the string, object or array at `start` ends before `limit`, and where.

    If it does not: where its brackets stop matching, or `limit`.
    """
    closers = bytearray()
    while mark := _STRUCTURE.search(data, start, limit):
        start = mark.end()
        char = data[start - 1]
        if char == _QUOTE:
            start = _string_end(data, start, limit)
            if start < 0:
                return False, limit
        elif char in _CLOSERS and len(closers) < MAX_DEPTH:
            closers.append(_CLOSERS[char])
        elif not closers or closers.pop() != char:
            return False, start
        if not closers:
            return True, start
    return False, limit


def _string_end(data: bytes, start: int, limit: int) -> int:
    """Return the end of the string whose characters begin at `start`; -1 if it has none."""
    while (quote := data.find(b'"', start, limit)) >= 0:
        escape = quote
        while escape > start and data[escape - 1] == _BACKSLASH:
            escape -= 1
        start = quote + 1
        if (quote - escape) % 2 == 0:
            return start
    return -1
