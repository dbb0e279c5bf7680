"""A window that slides over a file and finds the ends of its JSON values.

JSON values are self-delimiting: at most one prefix of a text is an object. So Python's reader,
which stops at the end of a value, finds the end of every element that is not damaged itself.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from pipelines.read.stream import ByteStream

REACH = 4096
"""The maximum number of blanks before or after an object that are skipped to find its
neighbours."""

_FIRST_BYTES = 8 << 10
_SEPARATORS = re.compile(rb"[ \t\n\r,]*+")
_LENIENT = json.JSONDecoder(strict=False, parse_int=float)
_STRICT = json.JSONDecoder(parse_int=float)
_BEGUN = re.compile(r"[-+.\\0-9A-Za-z]{0,9}")
"""Matches text that may begin a word (-Infinity) or an escape, or that ends a number."""
_OPENER = re.compile(r"\ufeff?[ \t\n\r]*+([\[{])")
_MEMBER = re.compile(r'[ \t\n\r,]*+"((?:[^"\\]|\\.)*+)"[ \t\n\r]*+:[ \t\n\r]*+', re.DOTALL)


class TextWindow:
    """The bytes [base, end) of a file; all offsets count from the start of the file.

    The window grows at its end. A call that makes it grow drops the bytes that precede its `floor`
    by more than REACH.
    """

    def __init__(self, stream: ByteStream, *, block_bytes: int) -> None:
        self.data = b""
        self.base = stream.offset
        self.parsed_bytes = 0
        """The number of bytes that value() has parsed."""
        self._stream = stream
        self._block_bytes = block_bytes

    @property
    def end(self) -> int:
        """The offset after the last byte in the window."""
        return self.base + len(self.data)

    def more(self, floor: int) -> bool:
        """Read the next block and return True, or return False at the end of the file.

        Blocks grow with the window, so that searching the window again after each block takes
        linear time in total.
        """
        offset = self.end
        held = self.data[max(0, floor - REACH - self.base) :]
        block = self._stream.read(max(self._block_bytes, len(held) // 2))
        if block:
            self.data = held + block
            self.base = offset - len(held)
        return bool(block)

    def load(self, floor: int, end: int) -> None:
        """Read until the window contains the bytes up to `end`, or to the end of the file."""
        while self.end < end and self.more(floor):
            pass

    def slice(self, start: int, end: int) -> bytes:
        """Return the bytes of [start, end) that the window contains."""
        return self.data[max(0, start - self.base) : max(0, end - self.base)]

    def peek(self, offset: int, size: int) -> bytes:
        """Return the `size` bytes at `offset`; fewer at the end of the file."""
        self.load(offset, offset + size)
        return self.slice(offset, offset + size)

    def skip(self, offset: int) -> int:
        """Return the end of the run of blanks and commas at `offset`."""
        while True:
            run = _SEPARATORS.match(self.data, offset - self.base)
            offset = self.base + (run.end() if run else 0)
            if offset < self.end or not self.more(offset):
                return offset

    def value(
        self, offset: int, *, max_bytes: int, before: str = ""
    ) -> tuple[Any, int | None, bool]:
        """Return the JSON value at `offset`, its end, and whether the file ends inside the value.

        Strings may contain invalid UTF-8 and control characters. The end is None if there is no
        JSON value of at most `max_bytes`.

        Args:
            offset: The offset at which the value begins.
            max_bytes: The maximum length of the value.
            before: Text to put before the bytes: the beginning of the value that the bytes
                continue.

        Raises:
            RecursionError: The value is nested too deeply for Python's reader.
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
    """Return whether a text that caused an error could become valid JSON if more text followed."""
    return error.msg.startswith("Unterminated string") or bool(
        _BEGUN.fullmatch(error.doc, error.pos)
    )


def array_start(head: bytes, text_fields: Sequence[str] | None = None) -> int | None:
    """Return the offset of the array's first element, or of the blanks before it.

    The result is None if no array begins in the first bytes of the file. The array may be the whole
    file. It may also be a member of an object that is the whole file, under the key "RECORDS" or,
    if the objects in the array have one of the fields, under any key.

    Args:
        head: The first bytes of the file.
        text_fields: The fields that contain text; if empty, any field with several words counts as
            one of them; if None, the only key accepted is "RECORDS".
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
        # A damaged first line is already invalid JSON before the second line begins.
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
    """Return whether the first line is an object that is followed by more text."""
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
        if fields is not None and has_text({member[1]: value}, fields):  # itself a record
            fields = None
    return None


def _holds_records(text: str, offset: int, fields: frozenset[str]) -> bool:
    """Return whether an array begins with an object that has one of the fields."""
    opener = _OPENER.match(text, offset)
    if opener is None or opener[1] != "{":
        return False
    try:
        value, _ = _LENIENT.raw_decode(text, opener.start(1))
    except (ValueError, RecursionError):  # The object may be longer than the head.
        names = [member[1] for member in [_MEMBER.match(text, opener.end())] if member]
        return not fields or not fields.isdisjoint(names)
    return has_text(value, fields)


def has_text(value: Mapping[str, Any], fields: frozenset[str]) -> bool:
    """Return whether an object has one of `fields`, or several words if `fields` is empty."""
    if fields:
        return not fields.isdisjoint(value)
    return any(isinstance(text, str) and len(text.split()) > 1 for text in value.values())
