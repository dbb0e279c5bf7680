import datetime
from typing import Any

import pytest

from pipelines.corpus.fields import as_text


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
