"""Converts the values of records to text, as people write them and not as Python shows them.

Provenance, ids and the rows kept in rejects/ use this conversion. A string stays as it is. Numbers,
booleans, lists and objects are written as JSON, integers with all their digits; decimals, dates and
UUIDs are written out; a duration is written as hours, minutes and seconds; bytes are decoded as
UTF-8 or, if they are not text, written in hexadecimal. A value that has no text (null, NaN, a lone
surrogate) becomes "".
"""

import json
import math
import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import orjson


class Unusable:
    """The type of UNUSABLE."""

    def __repr__(self) -> str:
        return "unusable"


UNUSABLE = Unusable()
"""Stands for a value that cannot be represented."""

MAX_DEPTH = 200
"""The nesting depth up to which a value that orjson refuses is still converted. The limit of
Python's own JSON module depends on the stack depth of its caller."""

_PLAIN = orjson.OPT_NON_STR_KEYS | orjson.OPT_NAIVE_UTC | orjson.OPT_SERIALIZE_NUMPY
_NANOSECONDS = 10**9
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def as_text(value: Any) -> str:
    """Return a value as text; "" if the value has no text."""
    if isinstance(value, str):
        return value
    if value is None or value is UNUSABLE:
        return ""
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes_as_text(bytes(value))
    if isinstance(value, float):
        return "" if math.isnan(value) else json.dumps(value)
    if isinstance(value, Mapping | list | tuple | bool):
        return as_json(value, sort=True).decode()
    return _other_as_text(value)


def as_json(value: Any, *, sort: bool = False) -> bytes:
    """Return a value as JSON; types that JSON lacks become strings, as in `as_text`.

    Args:
        value: The value.
        sort: Whether to sort the keys of objects.
    """
    try:
        return orjson.dumps(value, _inner, _PLAIN | (orjson.OPT_SORT_KEYS if sort else 0))
    except TypeError:  # an integer of more than 64 bits, or a value nested too deeply
        return _json_by_hand(value, sort=sort)


def text_of(value: Any) -> Any:
    """Decode bytes that are UTF-8; Parquet files without annotations store text as bytes.

    Any other value stays as it is.
    """
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def duration_as_text(nanoseconds: int) -> str:
    """Return a duration as hours, minutes and seconds, for example 26:03:04.5."""
    seconds, rest = divmod(abs(nanoseconds), _NANOSECONDS)
    minutes, hours = seconds // 60 % 60, seconds // 3600
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{'-' * (nanoseconds < 0)}{hours}:{minutes:02}:{seconds % 60:02}{fraction}"


def _bytes_as_text(value: bytes) -> str:
    text = text_of(value)
    # A hash may happen to be valid UTF-8, but it is not text that people would write.
    is_text = isinstance(text, str) and not _CONTROL.search(text) and not text.isspace()
    return text if is_text else value.hex()


def _other_as_text(value: Any) -> str:
    if isinstance(value, Decimal):
        return "" if value.is_nan() else f"{value:f}"
    if isinstance(value, timedelta):
        return duration_as_text(value // timedelta(microseconds=1) * 1000)
    return as_text(value.tolist()) if hasattr(value, "tolist") else str(value)


def _inner(value: Any) -> str | None:
    """Convert a value inside a list or object that orjson does not know to text or None."""
    return None if value is UNUSABLE else as_text(value)


def _json_by_hand(value: Any, *, sort: bool) -> bytes:
    try:
        plain = _without_unknown(value)
        text = json.dumps(plain, ensure_ascii=False, sort_keys=sort, separators=(",", ":"))
        return text.encode()
    except (RecursionError, ValueError):  # nested too deeply, or with a lone surrogate
        return b""


def _without_unknown(value: Any, depth: int = 1) -> Any:
    """Convert a value so that it consists only of types that json writes.

    Raises:
        RecursionError: The value is nested more deeply than MAX_DEPTH.
    """
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, Mapping):
        return {as_text(key): _without_unknown(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_unknown(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else _inner(value)
