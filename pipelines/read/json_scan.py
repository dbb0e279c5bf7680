"""A window that slides over a file and finds where JSON values end in it.

JSON values are self-delimiting: at most one prefix of a text is an object. So Python's reader,
which stops where a value ends, finds the end of an element that its own bytes do not damage.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from pipelines.read.stream import ByteStream

REACH = 4096
"""How many blanks before or after an object are skipped to find its neighbours."""

_FIRST_BYTES = 8 << 10
_SEPARATORS = re.compile(rb"[ \t\n\r,]*+")
_LENIENT = json.JSONDecoder(strict=False, parse_int=float)
_STRICT = json.JSONDecoder(parse_int=float)
_BEGUN = re.compile(r"[-+.\\0-9A-Za-z]{0,9}")
"""Possibly the beginning of a word (-Infinity) or an escape, or the rest of a number."""
_OPENER = re.compile(r"\ufeff?[ \t\n\r]*+([\[{])")
_MEMBER = re.compile(r'[ \t\n\r,]*+"((?:[^"\\]|\\.)*+)"[ \t\n\r]*+:[ \t\n\r]*+', re.DOTALL)


class Window:
    """The bytes [base, end) of a file; offsets are offsets in the file.

    It grows at its end and forgets what lies more than REACH before the `floor` of the call that
    makes it grow.
    """

    def __init__(self, stream: ByteStream, *, block_bytes: int) -> None:
        self.data = b""
        self.base = stream.offset
        self.parsed_bytes = 0
        """How many bytes value() has parsed."""
        self._stream = stream
        self._block_bytes = block_bytes

    @property
    def end(self) -> int:
        """Return the offset after the last byte held."""
        return self.base + len(self.data)

    def more(self, floor: int) -> bool:
        """Read on and return True, or return False at the end of the file.

        Blocks grow with the window, so that searching it again after each block stays linear.
        """
        offset = self.end
        held = self.data[max(0, floor - REACH - self.base) :]
        block = self._stream.read(max(self._block_bytes, len(held) // 2))
        if block:
            self.data = held + block
            self.base = offset - len(held)
        return bool(block)

    def load(self, floor: int, end: int) -> None:
        """Read until the bytes up to `end`, or to the end of the file, are held."""
        while self.end < end and self.more(floor):
            pass

    def slice(self, start: int, end: int) -> bytes:
        """Return those of the bytes [start, end) that are held."""
        return self.data[max(0, start - self.base) : max(0, end - self.base)]

    def peek(self, offset: int, size: int) -> bytes:
        """Return the next `size` bytes; fewer at the end of the file."""
        self.load(offset, offset + size)
        return self.slice(offset, offset + size)

    def skip(self, offset: int) -> int:
        """Return where the run of blanks and commas at `offset` ends."""
        while True:
            run = _SEPARATORS.match(self.data, offset - self.base)
            offset = self.base + (run.end() if run else 0)
            if offset < self.end or not self.more(offset):
                return offset

    def value(
        self, offset: int, *, max_bytes: int, before: str = ""
    ) -> tuple[Any, int | None, bool]:
        """Return the JSON value at `offset`, where it ends, and whether the file ends inside it.

        Invalid UTF-8 and control characters are part of a string. The end is None if there is no
        JSON, or none that takes at most `max_bytes`.

        Args:
            offset: Where it begins.
            max_bytes: How far to look.
            before: Text to put before the bytes, to begin a value that they end.

        Raises:
            RecursionError: It is nested too deeply for Python's reader.
        """
        size = _FIRST_BYTES
        while True:
            raw = self.peek(offset, min(size, max_bytes + 1))
            self.parsed_bytes += len(raw)
            text = before + raw.decode(errors="surrogateescape")
            is_last = offset + len(raw) >= self._stream.size
            try:
                value, length = _LENIENT.raw_decode(text)
            except json.JSONDecodeError as error:
                if not _is_cut(error):
                    self.parsed_bytes += error.pos - len(raw)
                    return None, None, False
            else:
                if length < len(text) or is_last:
                    self.parsed_bytes += length - len(raw)
                    source = text[len(before) : length].encode(errors="surrogateescape")
                    return value, offset + len(source), False
            if is_last or size > max_bytes:
                return None, None, is_last
            size *= 4


def _is_cut(error: json.JSONDecodeError) -> bool:
    """Return whether the text might continue so that it is JSON."""
    return error.msg.startswith("Unterminated string") or bool(
        _BEGUN.fullmatch(error.doc, error.pos)
    )


def array_start(head: bytes, text_fields: Sequence[str] | None = None) -> int | None:
    """Return the offset of the array's first element, or of the blanks before it.

    None if no array begins in the first bytes of a file: bare, under the key "RECORDS", or under
    another key of an object that is the whole file, and then of objects with one of the fields.

    Args:
        head: The first bytes.
        text_fields: Fields that hold text; none: any text does; None: there is no other key.
    """
    text = head.decode(errors="surrogateescape")
    opener = _OPENER.match(text)
    if opener is None:
        return None
    fields = None if text_fields is None or _is_line(text) else frozenset(text_fields)
    start = opener.end() if opener[1] == "[" else _records_start(text, opener.end(), None)
    if start is None and fields is not None and not _is_record(text, opener.start(1), fields):
        start = _records_start(text, opener.end(), fields)
    return start and len(text[:start].encode(errors="surrogateescape"))


def spans_lines(head: bytes) -> bool:
    """Return whether a file begins with an object that takes several lines."""
    text = head.decode(errors="replace").removeprefix("\ufeff").lstrip()
    line_end = text.find("\n")
    if line_end < 0 or not text.startswith("{"):
        return False
    try:
        _, length = _STRICT.raw_decode(text)
    except json.JSONDecodeError as error:
        # A first line that is broken is no longer JSON where the second one begins.
        return error.pos > len(text) - len(text[line_end:].lstrip())
    except RecursionError:
        return False
    return length > line_end


def _is_record(text: str, offset: int, fields: frozenset[str]) -> bool:
    """Return whether the object at `offset` ends within the text and has one of the fields."""
    try:
        value, _ = _LENIENT.raw_decode(text, offset)
    except (ValueError, RecursionError):
        return False
    return not fields.isdisjoint(value)


def _is_line(text: str) -> bool:
    """Return whether the first line is an object, and something follows."""
    line, _, rest = text.removeprefix("\ufeff").lstrip().partition("\n")
    try:
        return bool(rest.strip()) and isinstance(orjson.loads(line), dict)
    except (ValueError, UnicodeError):
        return False


def _records_start(text: str, offset: int, fields: frozenset[str] | None) -> int | None:
    while member := _MEMBER.match(text, offset):
        offset = member.end()
        if text.startswith("[", offset) and (
            member[1] == "RECORDS"
            or (fields is not None and _holds_records(text, offset + 1, fields))
        ):
            return offset + 1
        try:
            value, offset = _LENIENT.raw_decode(text, offset)
        except (ValueError, RecursionError):
            return None
        if fields is not None and has_text({member[1]: value}, fields):  # a record itself
            fields = None
    return None


def _holds_records(text: str, offset: int, fields: frozenset[str]) -> bool:
    """Return whether an array begins with an object that has one of the fields."""
    opener = _OPENER.match(text, offset)
    if opener is None or opener[1] != "{":
        return False
    try:
        value, _ = _LENIENT.raw_decode(text, opener.start(1))
    except (ValueError, RecursionError):  # it may be longer than the head
        names = [member[1] for member in [_MEMBER.match(text, opener.end())] if member]
        return not fields or not fields.isdisjoint(names)
    return has_text(value, fields)


def has_text(value: Mapping[str, Any], fields: frozenset[str]) -> bool:
    """Return whether an object has one of some fields, or if there are none, words in any."""
    if fields:
        return not fields.isdisjoint(value)
    return any(isinstance(text, str) and len(text.split()) > 1 for text in value.values())
