"""The fields of records: their types, how long they are, and which one holds the text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.read.record import Record

MAX_FIELDS = 200
"""Fields that are distinguished; records that use keys as values have any number."""

NAMES_SHOWN = 12
"""Fields of records that a message names."""
_MAX_NAME = 60

_MAX_DEPTH = 4
MIN_PRESENT = 0.5
"""Share of the records that have the field of the text."""
_MIN_PROSE = 8.0
"""Letters that a text has on average, at least."""
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
    """With dots for a field in a field."""
    types: tuple[str, ...]
    """The most frequent first."""
    present: float
    """Share of the records that have it."""
    chars: float
    """Mean length of its texts; 0 where it holds none."""
    prose: float
    """Mean number of its texts' letters, where they are words and not addresses or codes."""
    example: str
    """The first text that is not empty, or value."""


def fields_of(records: Sequence[Record]) -> list[Field]:
    """Return the fields of records in the order in which they appear."""
    values: dict[str, list[Any]] = {}
    for record in records:
        for name, value in _flat(record.value):
            if name in values or len(values) < MAX_FIELDS:
                values.setdefault(name, []).append(value)
    return [_field(name, found, len(records)) for name, found in values.items()]


def text_field(fields: Sequence[Field]) -> str:
    """Return the name of the field that looks most like texts; "" if none does.

    One that half of the records have goes before those that fewer have.
    """
    likely = [f for f in fields if f.prose >= _MIN_PROSE]
    frequent = [f for f in likely if f.present >= MIN_PRESENT]
    return max(frequent or likely, key=lambda f: f.prose * f.present).name if likely else ""


def listed(names: Sequence[str]) -> str:
    """Return the names of fields for a message: the first of them, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(map(short, names[:NAMES_SHOWN]))}{more}"


def short(text: str, *, most: int = _MAX_NAME) -> str:
    """Return a text, cut with an ellipsis if it has more characters than `most`."""
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
    """Return how many letters a text has; 0 for addresses, codes and dates, which have no words."""
    words = text.split()
    if text.isascii() and len(words) < 2:  # noqa: PLR2004 - one word is no text
        return 0.0
    return sum(map(str.isalpha, text))
