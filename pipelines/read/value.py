"""The values of records as text, by one rule: as people write them, and never as Python shows them.

Provenance, ids and what rejects/ keeps of a row are made by it. A string stays as it is. Numbers,
yes and no, lists and objects are JSON, integers with all their digits; decimals, dates and UUIDs
are written out; a duration is hours, minutes and seconds; bytes are UTF-8 or, where they are no
text, hexadecimal. A value without text (null, NaN, half of a surrogate pair) is "".
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
"""Stands for a value that cannot be had."""

MAX_DEPTH = 200
"""How deep a value may be nested that orjson refuses: how deep Python's own JSON can go depends on
how deep its caller is."""

_PLAIN = orjson.OPT_NON_STR_KEYS | orjson.OPT_NAIVE_UTC | orjson.OPT_SERIALIZE_NUMPY
_NANOSECONDS = 10**9
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def as_text(value: Any) -> str:
    """Return a value as text, "" where it has none."""
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
    """Return a value as JSON; what JSON has no type for is a string, as of `as_text`.

    Args:
        value: The value.
        sort: Write the keys of objects in their order.
    """
    try:
        return orjson.dumps(value, _inner, _PLAIN | (orjson.OPT_SORT_KEYS if sort else 0))
    except TypeError:  # an integer of more than 64 bits, or nested too deeply
        return _json_by_hand(value, sort=sort)


def text_of(value: Any) -> Any:
    """Return bytes that are UTF-8 as a string, as Parquet without annotations holds text.

    Any other value stays as it is.
    """
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def duration_as_text(nanoseconds: int) -> str:
    """Return a duration as hours, minutes and seconds, as in 26:03:04.5."""
    seconds, rest = divmod(abs(nanoseconds), _NANOSECONDS)
    minutes, hours = seconds // 60 % 60, seconds // 3600
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{'-' * (nanoseconds < 0)}{hours}:{minutes:02}:{seconds % 60:02}{fraction}"


def _bytes_as_text(value: bytes) -> str:
    text = text_of(value)
    # A hash may happen to be UTF-8; it is no text that people would write.
    is_text = isinstance(text, str) and not _CONTROL.search(text) and not text.isspace()
    return text if is_text else value.hex()


def _other_as_text(value: Any) -> str:
    if isinstance(value, Decimal):
        return "" if value.is_nan() else f"{value:f}"
    if isinstance(value, timedelta):
        return duration_as_text(value // timedelta(microseconds=1) * 1000)
    return as_text(value.tolist()) if hasattr(value, "tolist") else str(value)


def _inner(value: Any) -> str | None:
    """Return a value of a list or an object that orjson does not know, as it should write it."""
    return None if value is UNUSABLE else as_text(value)


def _json_by_hand(value: Any, *, sort: bool) -> bytes:
    try:
        plain = _without_unknown(value)
        text = json.dumps(plain, ensure_ascii=False, sort_keys=sort, separators=(",", ":"))
        return text.encode()
    except (RecursionError, ValueError):  # nested too deeply, or half of a surrogate pair
        return b""


def _without_unknown(value: Any, depth: int = 1) -> Any:
    """Return a value of types that json writes.

    Raises:
        RecursionError: It is nested more deeply than MAX_DEPTH.
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
