import math
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.readers.salvage import MAX_DEPTH, UNUSABLE, Partial, parse_object
from tests.pipelines.readers.readings import damages, read_file, reading, values, written


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"1e400", math.inf),
        (b"-1.5E+999", -math.inf),
        (b"9" * 5000, math.inf),
        (b"-" + b"9" * 400, -math.inf),
        (b"Infinity", math.inf),
        (b"-Infinity", -math.inf),
        (b'"\\ud800"', UNUSABLE),
        (b'"a\\udc00\\ud800"', UNUSABLE),
    ],
)
def test_a_value_that_cannot_be_had_costs_itself(raw: bytes, value: Any) -> None:
    found = parse_object(b'{"text" : "a \\u0000b" , "n":' + raw + b', "m":[1 ,-2.5e3]}')
    assert isinstance(found, Partial)
    assert found == {"text": "a \0b", "n": value, "m": [1, -2500.0]}
    assert found.reason == "bad-json"


def test_keys_are_mended_and_values_named() -> None:
    raw = b'{"a\\ud800":1e999,"\\u0000":[1, {"a": [NaN, "x", "\\ud83d\\ude00", "\\ud800"]}]}'
    assert repr(parse_object(raw)) == repr({"a\ufffd": math.inf, "\0": [1, {"a": [
        math.nan, "x", "😀", UNUSABLE,
    ]}]})  # fmt: skip


def test_what_orjson_reads_is_whole() -> None:
    raw = b'{"n":' + b"[" * 1000 + b"]" * 1000 + b"}"
    assert type(parse_object(raw)) is dict


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
        b'{"n":NaN, "m":"raw \x01"}',
        b'{"n":NaN, "m":"\xff"}',
        b'{"n":01e400}',
        b"[1e400]",
        b"1e400",
        b'{"n":NaN,"m":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
        b'{"n":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    ],
)
def test_what_is_no_json_is_none(raw: bytes) -> None:
    assert parse_object(raw) is None


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
def test_all_else_is_what_orjson_makes_of_it(text: str) -> None:
    found = parse_object(b'{"first":Infinity,"rest":' + text.encode() + b"}")
    usable = text.replace("1e400", '"inf"').replace('"\\ud800"', '"unusable"')
    assert found is not None
    assert repr(_named(found["rest"])) == repr(orjson.loads(usable))


def _named(value: Any) -> Any:
    if isinstance(value, list):
        return [_named(item) for item in value]
    if isinstance(value, dict):
        return {key: _named(item) for key, item in value.items()}
    return repr(value) if value is UNUSABLE or value == math.inf else value


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_such_records_are_read(name: str, tmp_path: Path) -> None:
    odd = [b'{"text":"a","n":' + value + b"}" for value in (b"1e400", b"NaN", b'"\\ud800"')]
    good = b'{"text":"b"}'
    records = [good, *odd, good]
    raw = b"[" + b",".join(records) + b"]" if name == "a.json" else b"\n".join(records)
    items = read_file(written(tmp_path / name, raw), reading())
    assert [value["text"] for value in values(items)] == [*"baaab"]
    assert [isinstance(value, Partial) for value in values(items)] == [0, 1, 1, 1, 0]
    assert not damages(items)
