import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.readers.places import mend_json, mend_row, mend_text


@pytest.mark.parametrize(
    ("raw", "mended"),
    [
        (b'"caf\xe9"', '"caf\ufffd"'.encode()),
        (b'"\xe4\xb8"', '"\ufffd"'.encode()),
        (rb'"\ud800"', rb'"\ufffd"'),
        (rb'"\uDC00 \ud83d\ude00 \ud83d"', rb'"\ufffd \ud83d\ude00 \ufffd"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\\ud800 \\\ud800 \\\\ud800"', rb'"\\ud800 \\\ufffd \\\\ud800"'),
        (rb'"\ud80"', rb'"\ud80"'),
        (b'"\\', b'"\\'),
    ],
)
def test_what_is_invalid_in_json_is_replaced(raw: bytes, mended: bytes) -> None:
    assert mend_json(raw) == mended


@given(st.text())
def test_valid_json_stays_as_it_is(text: str) -> None:
    for raw in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        assert mend_json(raw.encode()) == raw.encode()


@given(st.binary())
def test_mended_text_is_valid(raw: bytes) -> None:
    assert mend_text(raw).decode() == raw.decode("utf-8", "replace")


def test_rows_are_mended_in_every_column_of_strings() -> None:
    bad = pa.array([b"caf\xe9", None, b"ok"], pa.binary())
    large = pa.array([b"\xff", b"", None], pa.large_binary()).view(pa.large_string())
    table = pa.table({"a": bad.view(pa.string()), "b": large, "n": [1, 2, 3]})
    assert mend_row(table).to_pylist() == [
        {"a": "caf\ufffd", "b": "\ufffd", "n": 1},
        {"a": None, "b": "", "n": 2},
        {"a": "ok", "b": None, "n": 3},
    ]
