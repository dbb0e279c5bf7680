"""Recognises files in which one record contains all records, in a different layout."""

from collections.abc import Mapping
from typing import Any

BY_COLUMNS = (
    'This looks like a table that pandas wrote by columns. Write it by rows: python -c "import '
    "pandas; pandas.read_json('FILE').to_json('NEW.jsonl', orient='records', lines=True, "
    'force_ascii=False)"'
)
_ENTRIES = (
    "This looks like an object that maps names to texts. Write one record per text: "
    "jq -c 'to_entries[] | {id: .key, text: .value}' FILE > NEW.jsonl"
)
_MIN_ENTRIES = 2


def advice_on(record: Mapping[str, Any]) -> str:
    """Return advice on a record that contains all records of a file, with the command to use.

    Returns:
        Sentences without the last full stop; "" if the record does not seem to be of this kind.
    """
    if any(isinstance(value, Mapping) and _are_numbers(value) for value in record.values()):
        return BY_COLUMNS
    for name, value in record.items():
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            return (
                f"The records seem to be in the list {name!r}. Write one record per line: "
                f"jq -c '.[\"{name}\"][]' FILE > NEW.jsonl"
            )
    if len(record) >= _MIN_ENTRIES and all(map(_is_entry, record.items())):
        return _ENTRIES
    return ""


def _are_numbers(value: Mapping[str, Any]) -> bool:
    return bool(value) and all(str(key).isdecimal() for key in value)


def _is_entry(item: tuple[str, Any]) -> bool:
    """Return whether a field contains text and is named like a file or a number."""
    name, value = item
    return isinstance(value, str) and (name.isdecimal() or "." in name or "/" in name)
