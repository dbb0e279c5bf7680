"""The fields of a record, as text."""

from collections.abc import Mapping
from typing import Any

import orjson

from pipelines.corpus.document import Rejected
from pipelines.readers.salvage import UNUSABLE


def required_text(record: Mapping[str, Any], name: str) -> str:
    """Return the string in a field.

    Raises:
        Rejected: It is missing or null, or no string.
    """
    if record.get(name) is None:
        raise Rejected("missing-field", name)
    return optional_text(record, name)


def optional_text(record: Mapping[str, Any], name: str) -> str:
    """Return the string in a field, "" where it is missing or null.

    Raises:
        Rejected: It is no string.
    """
    value = record.get(name)
    if value is not None and not isinstance(value, str):
        raise Rejected("wrong-type", name)
    return value or ""


def value_at(record: Mapping[str, Any], path: str) -> Any:
    """Return the value of a field, or with dots of a field in a field; None where there is none."""
    if path in record:
        return record[path]
    outer, dot, inner = path.partition(".")
    value = record.get(outer)
    return value_at(value, inner) if dot and isinstance(value, Mapping) else None


def as_text(value: Any) -> str:
    """Return a value as provenance: a string as it is, null as "", anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else orjson.dumps(value, default=_plain, option=_JSON).decode()
    except TypeError as error:  # nested too deeply, or not to be had
        raise Rejected("wrong-type") from error


def _plain(value: Any) -> str:
    if value is UNUSABLE:
        raise TypeError("unusable")
    return str(value)


_JSON = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS | orjson.OPT_NAIVE_UTC


def shortened(text: str) -> str:
    """Return a text of at most 100 characters, a longer one cut there with six dots behind it.

    THUDM/GLM data_utils/corpora.py (trim_field) cuts the descriptions of questions so.
    """
    return text if len(text) <= _MOST else text[:_MOST] + "." * 6


_MOST = 100
