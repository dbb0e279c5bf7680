import math
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.read.json_object import parse_object
from pipelines.read.value import UNUSABLE


@given(
    st.recursive(
        st.sampled_from(["1e400", '"\\ud800"', '"a"', "1", "-0", "-0.0", "1E-999", "true"])
        | st.integers(-(2**66), 2**66).map(str)
        | st.floats(allow_nan=False, allow_infinity=False).map(repr),
        lambda inner: (
            st.lists(inner, max_size=4).map(lambda items: f"[{','.join(items)}]")
            | st.lists(inner, max_size=4).map(
                lambda items: (
                    "{" + ",".join(f'"{key}":{item}' for key, item in enumerate(items)) + "}"
                )
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=100, deadline=None)
def test_other_values_equal_those_of_orjson(text: str) -> None:
    found = parse_object(b'{"first":Infinity,"rest":' + text.encode() + b"}")
    usable = text.replace("1e400", '"inf"').replace('"\\ud800"', '"unusable"')
    assert found is not None
    assert repr(_named(found["rest"])) == repr(_named(orjson.loads(usable)))


def _named(value: Any) -> Any:
    if isinstance(value, list):
        return [_named(item) for item in value]
    if isinstance(value, dict):
        return {key: _named(item) for key, item in value.items()}
    if isinstance(value, int | float) and 1 << 63 <= abs(value) < math.inf:  # orjson rounds these
        return float(value)
    return repr(value) if value is UNUSABLE or value == math.inf else value


@pytest.mark.parametrize("record", ['{"id": %s}', '{"meta": {"id": %s}}', '{"id": %s, "x": NaN}'])
@pytest.mark.parametrize("digits", [str(2**64), str(-(2**63) - 1), "9" * 640])
def test_integers_keep_all_their_digits(record: str, digits: str) -> None:
    found = parse_object((record % digits).encode())
    assert found is not None
    assert str(found.get("id") or found["meta"]["id"]) == digits


def test_an_integer_longer_than_python_reads_is_a_float() -> None:
    assert parse_object(b'{"id": ' + b"9" * 5000 + b"}") == {"id": math.inf}
