"""The fields of a record, as text."""

from collections.abc import Mapping
from typing import Any

from pipelines.corpus.document import Rejected
from pipelines.read.value import text_of


def required_text(record: Mapping[str, Any], name: str) -> str:
    """Return the string in a field, or the UTF-8 text of its bytes.

    Raises:
        Rejected: It is missing or null, or no text.
    """
    if record.get(name) is None:
        raise Rejected("missing-field", name)
    return optional_text(record, name)


def optional_text(record: Mapping[str, Any], name: str) -> str:
    """Return the string in a field, or the UTF-8 text of its bytes; "" where it is missing or null.

    Raises:
        Rejected: It is no text.
    """
    value = record.get(name)
    return "" if value is None else checked_text(value, name)


def checked_text(value: Any, name: str) -> str:
    """Return the value of a field that should hold text: a string, or UTF-8 as bytes.

    Raises:
        Rejected: It is no text.
    """
    text = value if isinstance(value, str) else text_of(value)
    if not isinstance(text, str):
        raise Rejected("bad-utf8" if isinstance(value, bytes) else "wrong-type", name)
    return text


def joined_text(value: Any, name: str) -> str:
    r"""Return the text in a field, or its texts, such as paragraphs, with a line feed between two.

    Raises:
        Rejected: It is neither text nor a list of texts.
    """
    if isinstance(value, list):
        return "\n".join(checked_text(part, name) for part in value if part is not None)
    return checked_text(value, name)


def value_at(record: Mapping[str, Any], path: str, absent: Any = None) -> Any:
    """Return the value of a field, or with dots of a field in a field; of a list, one of each item.

    Args:
        record: The fields.
        path: The name.
        absent: The value to return if there is no such field.
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
    """Return a text of at most 100 characters, a longer one cut there with six dots behind it.

    THUDM/GLM data_utils/corpora.py (trim_field) cuts the descriptions of questions so.
    """
    return text if len(text) <= _MOST else text[:_MOST] + "." * 6


_MOST = 100
