"""Parses JSON objects, and keeps the usable fields of an object that orjson refuses.

Python's writer adds NaN and Infinity to JSON, and valid JSON may contain numbers beyond the range
of a float, and halves of surrogate pairs. A record is not dropped because of a field that the
corpus does not use: such numbers become floats, and such strings become UNUSABLE, which has no type
that a corpus expects. So a corpus that uses such a field rejects the record and reports
`Partial.reason`.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import orjson

from pipelines.read.record import BOM, WHOLE_BYTES, Damage, Reason, Record
from pipelines.read.value import MAX_DEPTH, UNUSABLE


class Partial(dict[str, Any]):
    """The fields of a record in which some values could not be represented."""

    def __init__(self, fields: Iterable[tuple[str, Any]], reason: Reason) -> None:
        super().__init__(fields)
        self.reason: Reason = reason
        """The reason to report if the corpus rejects the record."""


_SURROGATE = re.compile("[\ud800-\udfff]")
_MARKS = re.compile(rb"(?:%s)++" % BOM)
"""Byte order marks: where files were joined, a line may begin with the mark of the second file."""


def object_record(offset: int, raw: bytes, broken: Reason | None) -> Record | Damage | None:
    """Parse bytes as a JSON record; return damage if they are not a record, None if they are blank.

    Args:
        offset: The offset of the bytes.
        raw: The bytes.
        broken: Why the end of the bytes may be missing; None if they are complete. A complete
            object is a record in either case.
    """
    value = parse_object(raw)
    if value is not None:
        return Record(offset, len(raw), value, raw)
    if marks := _MARKS.match(raw):
        return object_record(offset + marks.end(), raw[marks.end() :], broken)
    if not raw.strip():
        return None
    return Damage(offset, len(raw), broken or damage_reason(raw.strip()), raw[:WHOLE_BYTES])


def damage_reason(damaged: bytes) -> Reason:
    """Return the reason why some bytes are not a JSON object."""
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
    """Return the JSON object that bytes contain; None if they are not a JSON object.

    The result is a Partial if a value cannot be represented.
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _salvaged(raw)
    return exact_integers(value, raw) if isinstance(value, dict) else None


def exact_integers(value: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """Return an object with all digits of its integers; orjson turns long integers into floats.

    Args:
        value: The object as orjson parsed it.
        raw: The JSON text of the object.
    """
    if not _may_be_rounded(value):
        return value
    try:
        exactly: dict[str, Any] = _usable(_DECODER.decode(raw.decode()))
    except RecursionError:
        return value
    return exactly


def _may_be_rounded(value: dict[str, Any]) -> bool:
    """Return whether a field, or a nested field, may be an integer of more than 64 bits."""
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
    """Return a value in which UNUSABLE replaces each string that contains a lone surrogate.

    Raises:
        RecursionError: The value is nested more deeply than MAX_DEPTH.
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
    """Return digits as an integer, or as a float if there are more than _MAX_DIGITS of them."""
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


_MAX_DIGITS = 640
"""The lowest limit on digits that Python can be configured to enforce."""

_DECODER = json.JSONDecoder(parse_int=_integer)
