import math
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.readers.salvage import MAX_DEPTH, UNUSABLE, Partial, salvage
from tests.pipelines.readers.readings import damages, read_file, reading, values, written


def salvaged(raw: bytes) -> Partial | None:
    with pytest.raises(orjson.JSONDecodeError) as caught:
        orjson.loads(raw)
    return salvage(raw, caught.value)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"1e400", math.inf),
        (b"-1.5E+999", -math.inf),
        (b"9" * 400, math.inf),
        (b"-" + b"9" * 400, -math.inf),
        (b"Infinity", math.inf),
        (b"-Infinity", -math.inf),
        (b'"\\ud800"', UNUSABLE),
        (b'"a\\udc00\\ud800"', UNUSABLE),
        (b"[" * 5000 + b"]" * 5000, UNUSABLE),
        (b'[1, {"a": [NaN, "x", "\\u0000"]}, "\\ud800 \\" ]"]', None),
    ],
)
def test_a_value_that_cannot_be_had_costs_itself(raw: bytes, value: Any) -> None:
    found = salvaged(b'{"text" : "a \\u0000b" , "n":' + raw + b', "m":[1 ,-2.5e3]}')
    assert found is not None
    assert (found["text"], found["m"], found.reason) == ("a \0b", [1, -2500.0], "bad-json")
    if raw.startswith(b"[[["):
        deepest: Any = found["n"]
        for _ in range(MAX_DEPTH - 2):
            (deepest,) = deepest
        assert deepest == [UNUSABLE]
    elif value is not None:
        assert found["n"] == value
    else:
        assert repr(found["n"]) == r"[1, {'a': [nan, 'x', '\x00']}, unusable]"


def test_keys_are_mended() -> None:
    assert salvaged(b'{"a\\ud800":1e999,"\\u0000":2}') == {"a\ufffd": math.inf, "\0": 2}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"n":1e400',
        b'{"n":1e400]',
        b'{"n":1e400}}',
        b'{"n":1e400} {}',
        b'{"n":1e400 1}',
        b'{"n":"\\ud800}',
        b'{"n":-NaN}',
        b'{"n":NaN, "m":01}',
        b'{"n":NaN, "m":"\\x"}',
        b'{"n":NaN, "m":\\u0000"1"}',
        b'{"n":01e400}',
        b"[1e400]",
        b"1e400",
        b'{"n":' + b"[" * 2000 + b"}" * 2000 + b"}",
        b'{"n":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    ],
)
def test_what_is_no_json_is_none(raw: bytes) -> None:
    assert salvaged(raw) is None


@given(
    st.recursive(
        st.sampled_from(["1e400", "NaN", '"\\ud800"', '"\\u00001"', '"a"', "1", "true"]),
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
def test_all_else_is_what_it_was(text: str) -> None:
    raw = b'{"first":NaN,"rest":' + text.encode() + b"}"
    usable = text.replace("1e400", "-5").replace("NaN", "-6").replace('"\\ud800"', "-7")
    expected = orjson.loads(usable)
    found = salvaged(raw)
    assert found is not None
    assert _named(found["rest"]) == expected


def _named(value: Any) -> Any:
    if isinstance(value, list):
        return [_named(item) for item in value]
    if isinstance(value, dict):
        return {key: _named(item) for key, item in value.items()}
    if isinstance(value, float):
        return -6 if math.isnan(value) else -5
    return -7 if value is UNUSABLE else value


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_such_records_are_read(name: str, tmp_path: Path) -> None:
    odd = [b'{"text":"a","n":' + value + b"}" for value in (b"1e400", b"NaN", b'"\\ud800"')]
    deep = b'{"text":"a","n":' + b'{"x":[' * 2000 + b"]}" * 2000 + b"}"
    good = b'{"text":"b"}'
    records = [good, *odd, good, deep, good]
    raw = b"[" + b",".join(records) + b"]" if name == "a.json" else b"\n".join(records)
    items = read_file(written(tmp_path / name, raw), reading())
    assert [value["text"] for value in values(items)] == [*"baaabab"]
    assert [isinstance(value, Partial) for value in values(items)] == [
        False, True, True, True, False, True, False,
    ]  # fmt: skip
    assert not damages(items)
