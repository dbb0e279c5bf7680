"""Objects of JSON; where orjson refuses one, only the value that it cannot represent is lost.

Python's writer adds NaN and Infinity to JSON, and valid JSON may hold numbers beyond a float and
half of a surrogate pair. A record is not thrown away for a field that nobody looks at: such numbers
become floats, such strings UNUSABLE, which is of no type that a corpus expects. So a corpus that
looks at one rejects the record, and it is rejected for `reason`.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import orjson

from pipelines.read.record import BOM, WHOLE_BYTES, Damage, Reason, Record
from pipelines.read.value import MAX_DEPTH, UNUSABLE


class Partial(dict[str, Any]):
    """The fields of a record of which some values could not be taken as they are."""

    def __init__(self, fields: Iterable[tuple[str, Any]], reason: Reason) -> None:
        super().__init__(fields)
        self.reason: Reason = reason
        """Why to reject the record if its corpus does."""


_SURROGATE = re.compile("[\ud800-\udfff]")
_MARKS = re.compile(rb"(?:%s)++" % BOM)
"""Where files were joined, a line may begin with the byte order mark of the second."""


def object_record(offset: int, raw: bytes, broken: Reason | None) -> Record | Damage | None:
    """Return the record that some bytes of JSON are, damage if they are none, None if blank.

    Args:
        offset: Where they begin.
        raw: The bytes.
        broken: Why their end may be missing; None if they are whole. A complete object is a record
            all the same.
    """
    value = parse_object(raw)
    if value is not None:
        return Record(offset, len(raw), value, raw)
    if marks := _MARKS.match(raw):
        return object_record(offset + marks.end(), raw[marks.end() :], broken)
    if not raw.strip():
        return None
    return Damage(offset, len(raw), broken or diagnosis(raw.strip()), raw[:WHOLE_BYTES])


def diagnosis(damaged: bytes) -> Reason:
    """Return the reason why some bytes are not an object."""
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


def parse_object(raw: bytes) -> dict[str, Any] | None:
    """Return the object that some bytes of JSON are, None if they are none.

    A value that cannot be had makes it a Partial.
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _salvaged(raw)
    return exact(value, raw) if isinstance(value, dict) else None


def exact(value: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """Return an object with all digits of its integers: orjson makes floats of long ones.

    Args:
        value: The object as orjson reads it.
        raw: Its bytes.
    """
    if not _may_be_rounded(value):
        return value
    try:
        exactly: dict[str, Any] = _usable(_DECODER.decode(raw.decode()))
    except RecursionError:
        return value
    return exactly


def _may_be_rounded(value: dict[str, Any]) -> bool:
    """Return whether an integer of more than 64 bits may be a field, or a field of a field."""
    for item in value.values():
        kind = type(item)
        if kind is float:
            if not -(2.0**63) < item < 2.0**64:
                return True
        elif kind is dict and _may_be_rounded(item):
            return True
    return False


def _salvaged(raw: bytes) -> Partial | None:
    try:
        value = _DECODER.decode(raw.decode())
        return Partial(_usable(value).items(), "bad-json") if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        return None


def _usable(value: Any, depth: int = 1) -> Any:
    """Return a value without halves of surrogate pairs.

    Raises:
        RecursionError: It is nested more deeply than MAX_DEPTH.
    """
    if isinstance(value, str):
        return UNUSABLE if _SURROGATE.search(value) else value
    if isinstance(value, dict | list) and depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        return {
            _SURROGATE.sub("\ufffd", key): _usable(item, depth + 1) for key, item in value.items()
        }
    return [_usable(item, depth + 1) for item in value] if isinstance(value, list) else value


def _integer(digits: str) -> int | float:
    """Return an integer; a float if it has more digits than Python reads."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


_MAX_DIGITS = 640
"""Any limit that Python may be set to is higher."""

_DECODER = json.JSONDecoder(parse_int=_integer)
