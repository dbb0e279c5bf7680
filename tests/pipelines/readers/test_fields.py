from collections.abc import Mapping
from typing import Any

from pipelines.readers.fields import MOST_FIELDS, Field, fields_of, text_field
from pipelines.readers.record import Record


def fields(*values: Mapping[str, Any]) -> dict[str, Field]:
    return {field.name: field for field in fields_of([Record(0, 1, v, b"") for v in values])}


def test_types_presence_length_and_example() -> None:
    found = fields({"a": "", "b": 1, "c": [1]}, {"a": "four", "c": []}, {"c": True}, {"c": None})
    assert list(found) == ["a", "b", "c"]
    assert (found["a"].present, found["a"].chars, found["a"].example) == (0.5, 2.0, "four")
    assert (found["b"].types, found["b"].present, found["b"].chars) == (("number",), 0.25, 0.0)
    assert found["c"].types == ("list", "list of number", "null", "yes/no")


def test_a_field_in_a_field_has_dots() -> None:
    found = fields({"meta": {"name": {"first": "A"}, "empty": {}}})
    assert list(found) == ["meta.name.first", "meta.empty"]
    assert found["meta.empty"].types == ("object",)


def test_keys_that_are_values_are_not_all_listed() -> None:
    assert len(fields({str(number): number for number in range(3 * MOST_FIELDS)})) == MOST_FIELDS


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
