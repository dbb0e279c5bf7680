"""Finds the fields of records, their types and lengths, and the field that contains the text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.read.record import Record

MAX_FIELDS = 200
"""The maximum number of fields that are listed; records whose keys are data may have any number of
fields."""

NAMES_SHOWN = 12
"""The maximum number of field names that a message lists."""
_MAX_NAME = 60

_MAX_DEPTH = 4
MIN_PRESENT = 0.5
"""The minimum share of records that should have the text field."""
_MIN_PROSE = 8.0
"""The minimum mean number of letters in the values of a text field."""
_TYPES = {
    str: "text",
    bytes: "bytes",
    bool: "yes/no",
    int: "number",
    float: "number",
    type(None): "null",
}


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of the records."""

    name: str
    """The name, with dots for nested fields."""
    types: tuple[str, ...]
    """The types of the values, the most frequent first."""
    present: float
    """The share of records that have the field."""
    chars: float
    """The mean number of characters in the field's texts; 0 if the field has no texts."""
    prose: float
    """The mean number of letters in the field's values; addresses, codes and values that are not
    texts count as 0."""
    example: str
    """The first value that is not empty, or else the first value."""


def fields_of(records: Sequence[Record]) -> list[Field]:
    """Return the fields of records in the order in which the fields first appear."""
    values: dict[str, list[Any]] = {}
    for record in records:
        for name, value in _flat(record.value):
            if name in values or len(values) < MAX_FIELDS:
                values.setdefault(name, []).append(value)
    return [_field(name, found, len(records)) for name, found in values.items()]


def text_field(fields: Sequence[Field]) -> str:
    """Return the name of the field that most resembles running text; "" if no field does.

    Fields that at least half of the records have are preferred to rarer fields.
    """
    likely = [f for f in fields if f.prose >= _MIN_PROSE]
    frequent = [f for f in likely if f.present >= MIN_PRESENT]
    return max(frequent or likely, key=lambda f: f.prose * f.present).name if likely else ""


def listed(names: Sequence[str]) -> str:
    """Return the first few field names for a message, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(map(short, names[:NAMES_SHOWN]))}{more}"


def short(text: str, *, most: int = _MAX_NAME) -> str:
    """Return a text; if it has more than `most` characters, cut it and add an ellipsis."""
    return text if len(text) <= most else f"{text[:most]}…"


def _flat(value: Mapping[str, Any], depth: int = 1) -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, Mapping) and item and depth < _MAX_DEPTH:
            for inner, found in _flat(item, depth + 1):
                yield f"{name}.{inner}", found
        else:
            yield str(name), item


def _field(name: str, values: Sequence[Any], num_records: int) -> Field:
    names = [_type(value) for value in values]
    texts = [value for value in values if isinstance(value, str)]
    shown = next((v for v in values if v not in ("", None, [], {})), values[0])
    return Field(
        name=name,
        types=tuple(sorted({*names}, key=lambda kind: (-names.count(kind), kind))),
        present=len(values) / num_records,
        chars=sum(map(len, texts)) / max(1, len(texts)),
        prose=sum(map(_letters, texts)) / len(values),
        example=shown if isinstance(shown, str) else str(shown),
    )


def _type(value: Any) -> str:
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, list):
        return f"list of {_type(value[0])}" if value else "list"
    return _TYPES.get(type(value), type(value).__name__)


def _letters(text: str) -> float:
    """Return the number of letters in a text; 0 for addresses, codes and dates."""
    words = text.split()
    if text.isascii() and len(words) < 2:  # noqa: PLR2004 - one word is no text
        return 0.0
    return sum(map(str.isalpha, text))
