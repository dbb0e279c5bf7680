"""Frozen dataclasses to JSON and back, with errors that say where something is wrong.

A sealed record holds a checksum of what it says: whoever reads it knows that nobody changed it.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from shards.storage.files import canonical, crc32c_of

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


def from_json(kind: type[T], value: object, *, where: str) -> T:
    """Return the record of type `kind` that `to_json` made `value` of.

    Fields may be int, float, str, bool, these `| None`, dataclasses, `tuple[X, ...]`,
    `Mapping[str, X]` and Any.

    Raises:
        ValueError: a field without a default is missing, one is unknown or of another type; says
            which, below `where`.
    """
    result: T = _read(kind, value, where)
    return result


def sealed(record: object) -> dict[str, Any]:
    """Return a record as `to_json` does, with the crc32c of what it says beside its fields."""
    said: dict[str, Any] = to_json(record)
    return {**said, _SEAL: crc32c_of(canonical(said))}


def unsealed(kind: type[T], value: Any, *, where: str) -> T:
    """Return the record of type `kind` that `sealed` made `value` of.

    Raises:
        ValueError: it is none, or was changed.
    """
    _expect(value, dict, where)
    said = {key: part for key, part in value.items() if key != _SEAL}
    record = from_json(kind, said, where=where)
    if crc32c_of(canonical(said)) != value.get(_SEAL):
        raise ValueError(f"{where} was changed after it was written")
    return record


def _read(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _read_record(kind, value, where)
    if get_origin(kind) is tuple:
        _expect(value, list, where)
        item = get_args(kind)[0]
        return tuple(_read(item, part, f"{where}[{i}]") for i, part in enumerate(value))
    if get_origin(kind) is Mapping:
        _expect(value, dict, where)
        item = get_args(kind)[1]
        return {key: _read(item, part, f"{where}.{key}") for key, part in value.items()}
    _expect(value, kind, where)
    return value


def _read_record(kind: Any, value: Any, where: str) -> Any:
    _expect(value, dict, where)
    kinds, optional = _shape(kind)
    if odd := sorted(value.keys() ^ (kinds.keys() - (optional - value.keys()))):
        state = "is missing" if odd[0] in kinds else "is not known"
        raise ValueError(f"{where}.{odd[0]} {state}")
    return kind(**{key: _read(kinds[key], part, f"{where}.{key}") for key, part in value.items()})


@cache
def _shape(kind: Any) -> tuple[Mapping[str, Any], frozenset[str]]:
    """Return the types of a record's fields, and which fields need not be there."""
    # A driver reads a record of every task: to look at the annotations anew takes milliseconds.
    optional = {each.name for each in fields(kind) if each.default is not MISSING}
    return get_type_hints(kind), frozenset(optional)


def _expect(value: object, kind: Any, where: str) -> None:
    # bool is an int to Python, never here; JSON writes a whole number for a float too.
    kinds = (int, float) if kind is float else kind
    if not isinstance(value, kinds) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{where} is {value!r}, not of type {getattr(kind, '__name__', kind)}")
