"""Objects of JSON; of what orjson refuses, a value that cannot be had costs itself alone.

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

from pipelines.readers.record import Reason


class Unusable:
    """The type of UNUSABLE."""

    def __repr__(self) -> str:
        return "unusable"


UNUSABLE = Unusable()
"""Stands for a value that cannot be had."""


class Partial(dict[str, Any]):
    """The fields of a record of which some values could not be taken as they are."""

    def __init__(self, fields: Iterable[tuple[str, Any]], reason: Reason) -> None:
        super().__init__(fields)
        self.reason: Reason = reason
        """Why to reject the record if its corpus does."""


MAX_DEPTH = 200
"""Nested more deeply, an object that orjson refuses is none: how deep Python's reader can go
depends on how deep its caller is."""

_INTEGER_DIGITS = 20
"""No integer of 64 bits has more, its sign included."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_object(raw: bytes) -> dict[str, Any] | None:
    """Return the object that some bytes of JSON are, None if they are none.

    A value that cannot be had makes it a Partial.
    """
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _salvaged(raw)
    return value if isinstance(value, dict) else None


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
    """Return an integer as orjson does: a float if it has more than 64 bits."""
    if len(digits) > _INTEGER_DIGITS:
        return float(digits)
    value = int(digits)
    return value if -(1 << 63) <= value < 1 << 64 else float(digits)


_DECODER = json.JSONDecoder(parse_int=_integer)
