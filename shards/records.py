"""Converts frozen dataclasses to JSON and back; errors name the invalid field.

A type may include a check of its values: Annotated[int, check], where check raises a ValueError. A
sealed record carries a checksum of its content, so that a reader notices any change.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from shards.storage.files import canonical_json, crc32c_of

T = TypeVar("T")

_SEAL = "seal"


def to_json(value: Any) -> Any:  # any record, any JSON
    """Return a record as plain dicts and lists; mappings and tuples may nest."""
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def from_json(record_type: type[T], value: object, *, where: str) -> T:
    """Return the record that `to_json` turned into `value`.

    Fields may be int, float, str, bool, these `| None`, dataclasses, `tuple[X, ...]`,
    `Mapping[str, X]`, any of these in `Annotated[X, check]`, and Any.

    Raises:
        ValueError: a field without a default is missing, or a field is unknown or has the wrong
            type; the message names the field, below `where`.
    """
    record: T = _read(record_type, value, where)
    return record


def seal(record: object) -> dict[str, Any]:
    """Return a record as `to_json` does, plus the crc32c of its content under "seal"."""
    content: dict[str, Any] = to_json(record)
    return {**content, _SEAL: crc32c_of(canonical_json(content))}


def unseal(record_type: type[T], value: Any, *, where: str) -> T:
    """Return the record that `seal` turned into `value`.

    Raises:
        ValueError: `value` is not such a record, or was changed.
    """
    _expect(value, dict, where)
    content = {key: item for key, item in value.items() if key != _SEAL}
    record = from_json(record_type, content, where=where)
    if crc32c_of(canonical_json(content)) != value.get(_SEAL):
        raise ValueError(f"{where} was changed after it was written")
    return record


def _read(expected: Any, value: Any, where: str) -> Any:
    """Convert a value to the expected type."""
    if expected is Any:
        return value
    if is_dataclass(expected):
        return _read_record(expected, value, where)
    if get_origin(expected) is Annotated:
        plain, check = get_args(expected)
        read = _read(plain, value, where)
        _check(check, read, where)
        return read
    if get_origin(expected) is tuple:
        _expect(value, list, where)
        item_type = get_args(expected)[0]
        return tuple(_read(item_type, item, f"{where}[{i}]") for i, item in enumerate(value))
    if get_origin(expected) is Mapping:
        _expect(value, dict, where)
        key_type, item_type = get_args(expected)
        return {
            _read(key_type, key, where): _read(item_type, item, f"{where}.{key[:_MAX_SHOWN]}")
            for key, item in value.items()
        }
    _expect(value, expected, where)
    return value


def _read_record(record_type: Any, value: Any, where: str) -> Any:
    _expect(value, dict, where)
    types, optional = _field_types(record_type)
    if wrong := sorted(value.keys() ^ (types.keys() - (optional - value.keys()))):
        state = "is missing" if wrong[0] in types else "is not known"
        raise ValueError(f"{where}.{wrong[0][:_MAX_SHOWN]} {state}")
    values = {key: _read(types[key], item, f"{where}.{key}") for key, item in value.items()}
    return _check(lambda fields: record_type(**fields), values, where)  # which may check its fields


def _check(check: Callable[[Any], Any], value: Any, where: str) -> Any:
    try:
        return check(value)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


@cache
def _field_types(record_type: Any) -> tuple[Mapping[str, Any], frozenset[str]]:
    """Return the types of a record's fields, and the names of those that may be absent."""
    # A driver reads one record per item, and resolving annotations takes milliseconds.
    optional = {
        field.name
        for field in fields(record_type)
        if (field.default, field.default_factory) != (MISSING, MISSING)
    }
    return get_type_hints(record_type, include_extras=True), frozenset(optional)


def _expect(value: object, expected: Any, where: str) -> None:
    # A bool does not count as an int, although it is one in Python; JSON may have 1 for 1.0.
    accepted = (int, float) if expected is float else expected
    if not isinstance(value, accepted) or (isinstance(value, bool) and expected is not bool):
        type_name = getattr(expected, "__name__", expected)
        raise ValueError(f"{where} is {shorten(value)}, not of type {type_name}")


def shorten(value: object) -> str:
    """Return a short text about any value for an error message."""
    if isinstance(value, int) and abs(value) >= _LARGE:
        return f"a number of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


_MAX_SHOWN = 100
_LARGE = 10**30
"""Larger numbers are described instead, because Python refuses to write very long ones."""
