"""Reads the fields of a record as text."""

from collections.abc import Mapping
from typing import Any

from pipelines.corpus.document import Rejected
from pipelines.read.value import text_of


def required_text(record: Mapping[str, Any], name: str) -> str:
    """Return the string in a field, or the UTF-8 text of its bytes.

    Raises:
        Rejected: The field is missing or null, or is not text.
    """
    if record.get(name) is None:
        raise Rejected("missing-field", name)
    return optional_text(record, name)


def optional_text(record: Mapping[str, Any], name: str) -> str:
    """Return a field's string, or the UTF-8 text of its bytes; "" if the field is missing or null.

    Raises:
        Rejected: The field is not text.
    """
    value = record.get(name)
    return "" if value is None else checked_text(value, name)


def checked_text(value: Any, name: str) -> str:
    """Return the text of a field that should contain a string, or UTF-8 as bytes.

    Raises:
        Rejected: The value is not text.
    """
    text = value if isinstance(value, str) else text_of(value)
    if not isinstance(text, str):
        raise Rejected("bad-utf8" if isinstance(value, bytes) else "wrong-type", name)
    return text


def joined_text(value: Any, name: str) -> str:
    """Return the text of a field; if it is a list of texts, join them with line feeds.

    Raises:
        Rejected: The value is neither text nor a list of texts.
    """
    if isinstance(value, list):
        return "\n".join(checked_text(part, name) for part in value if part is not None)
    return checked_text(value, name)


def value_at(record: Mapping[str, Any], path: str, absent: Any = None) -> Any:
    """Return the value of a field or, if the field is in a list of objects, a list of its values.

    Args:
        record: The fields of the record.
        path: The name of the field, with dots for a nested field.
        absent: The value to return if the field does not exist.
    """
    if path in record:
        return record[path]
    outer, dot, inner = path.partition(".")
    value = record.get(outer) if dot else None
    if isinstance(value, Mapping):
        return value_at(value, inner, absent)
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        return absent
    found = [value_at(item, inner, absent) for item in value]
    return absent if all(item is absent for item in found) else found


def shortened(text: str) -> str:
    """Return a text; if it is longer than 100 characters, cut it there and append six dots.

    THUDM/GLM data_utils/corpora.py (trim_field) shortens the descriptions of questions this way.
    """
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS] + "." * 6


_MAX_CHARS = 100
