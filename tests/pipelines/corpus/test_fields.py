import datetime
from typing import Any

import pytest

from pipelines.corpus.document import Rejected
from pipelines.corpus.fields import as_text, optional_text, required_text, shortened, value_at


@pytest.mark.parametrize(
    ("record", "required", "optional"),
    [
        ({"a": "x"}, "x", "x"),
        ({"a": ""}, "", ""),
        ({"a": None}, "missing-field", ""),
        ({}, "missing-field", ""),
        ({"a": 7}, "wrong-type", "wrong-type"),
        ({"a": False}, "wrong-type", "wrong-type"),
        ({"a": ["x"]}, "wrong-type", "wrong-type"),
    ],
)
def test_texts_of_a_field(record: dict[str, Any], required: str, optional: str) -> None:
    for find, wanted in ((required_text, required), (optional_text, optional)):
        if wanted in ("missing-field", "wrong-type"):
            with pytest.raises(Rejected, match=f"^{wanted}$"):
                find(record, "a")
        else:
            assert find(record, "a") == wanted


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a", {"b": {"c": 1}}),
        ("a.b.c", 1),
        ("a.b", {"c": 1}),
        ("a.x", None),
        ("x.b", None),
        ("d.e", "with a dot"),
        ("f.g", None),
        ("", None),
    ],
)
def test_a_path_leads_to_a_value(path: str, value: Any) -> None:
    record = {"a": {"b": {"c": 1}}, "d.e": "with a dot", "f": "text"}
    assert value_at(record, path) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("  as it is\n", "  as it is\n"),
        (None, ""),
        (7, "7"),
        (0.5, "0.5"),
        (False, "false"),
        ([], "[]"),
        ({"b": 1, "a": ["字", None]}, '{"a":["字",null],"b":1}'),
        (datetime.datetime(2024, 2, 29, 1, 2, 3), '"2024-02-29T01:02:03+00:00"'),
        (b"\x00", "\"b'\\\\x00'\""),
    ],
)
def test_provenance_is_text(value: Any, text: str) -> None:
    assert as_text(value) == text


@pytest.mark.parametrize(
    ("text", "short"),
    [("", ""), ("字" * 100, "字" * 100), ("字" * 101, "字" * 100 + "......")],
)
def test_long_descriptions_are_cut(text: str, short: str) -> None:
    assert shortened(text) == short
