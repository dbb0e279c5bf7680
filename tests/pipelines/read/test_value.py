"""Values are converted to text as people would write it, never as Python shows them."""

import datetime
import decimal
import math
import uuid
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.read.value import UNUSABLE, as_json, as_text

_UTC = datetime.UTC
_DEEP: Any = []
for _ in range(5000):
    _DEEP = [_DEEP]

TEXTS: list[tuple[Any, str]] = [
    ("as it is\n", "as it is\n"),
    (None, ""),
    (UNUSABLE, ""),
    (math.nan, ""),
    (np.float32("nan"), ""),
    (math.inf, "Infinity"),
    (True, "true"),
    (0, "0"),
    (2**200, str(2**200)),
    (-1.5, "-1.5"),
    (1e16, "1e+16"),
    (b"caf\xc3\xa9", "café"),
    (b"", ""),
    (b"caf\xe9", "636166e9"),
    (bytes(20), "00" * 20),
    (b"\t\n" * 8, "090a" * 8),
    (bytearray(b"ab"), "ab"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (decimal.Decimal("12.50"), "12.50"),
    (decimal.Decimal("1.2E+4"), "12000"),
    (decimal.Decimal("NaN"), ""),
    (datetime.date(2024, 2, 29), "2024-02-29"),
    (datetime.time(1, 2, 3), "01:02:03"),
    (datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=_UTC), "2024-02-29 01:02:03+00:00"),
    (datetime.timedelta(days=1, hours=2, seconds=3.5), "26:00:03.5"),
    (-datetime.timedelta(minutes=1), "-0:01:00"),
    (np.int64(7), "7"),
    (np.array([1, 2]), "[1,2]"),
    ([], "[]"),
    ({"b": [b"x", b"\xff"], "a": None}, '{"a":null,"b":["x","ff"]}'),
    ([UNUSABLE, math.nan, decimal.Decimal("1.0"), uuid.UUID(int=2)],
     '[null,null,"1.0","00000000-0000-0000-0000-000000000002"]'),
    ([datetime.timedelta(1), (1, "é")], '["24:00:00",[1,"é"]]'),
    ({"n": 2**64, "x": [math.nan, b"\xff"], b"k": 1}, f'{{"k":1,"n":{2**64},"x":[null,"ff"]}}'),
    (_DEEP, ""),
    ([2**64, "\ud800"], ""),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=map(str, range(len(TEXTS))))
def test_values_become_readable_text(value: Any, text: str) -> None:
    assert as_text(value) == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=3))
def test_json_equals_that_of_orjson_except_for_long_integers(value: dict[str, Any]) -> None:
    short = orjson.loads(as_json(value))
    assert short == orjson.loads(orjson.dumps(_short(value)))


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    is_long = type(value) is int and not -(2**63) <= value < 2**64
    return float(value) if is_long else value
