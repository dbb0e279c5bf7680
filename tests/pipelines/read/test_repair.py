"""The repair of invalid UTF-8 and lone surrogates in JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.read.repair import repair_json


@pytest.mark.parametrize(
    ("raw", "repaired"),
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
def test_invalid_parts_of_json_are_replaced(raw: bytes, repaired: bytes) -> None:
    assert repair_json(raw) == repaired


@given(st.text())
def test_valid_json_is_not_changed(text: str) -> None:
    for raw in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        assert repair_json(raw.encode()) == raw.encode()
