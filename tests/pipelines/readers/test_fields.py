from collections.abc import Mapping
from typing import Any

from pipelines.readers.fields import Field, fields_of, text_field
from pipelines.readers.record import Record


def fields(*values: Mapping[str, Any]) -> dict[str, Field]:
    return {field.name: field for field in fields_of([Record(0, 1, v, b"") for v in values])}


def test_the_text_is_the_field_with_most_letters_in_words() -> None:
    record = {
        "url": "https://example.org/" + "a" * 500,
        "hash": "0123456789abcdef" * 40,
        "title": "Two words",
        "body": {"text": "Many more words stand here"},
    }
    assert text_field([*fields(record).values()]) == "body.text"
    assert text_field([*fields({**record, "zh": "没有空格的中文也是文字" * 3}).values()]) == "zh"
    rare = {"note": "a note that is long but rare " * 9}
    assert text_field([*fields(*[{"a": "x"}] * 3, rare).values()]) == "note"
    frequent = [*fields(*[{"a": "a short text"}] * 3, rare).values()]
    assert text_field(frequent) == "a", "fewer letters, but of most records"
