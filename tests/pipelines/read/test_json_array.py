"""JSON arrays, read in blocks of any size, whole, truncated or damaged; compared with json."""

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.read.input_format import InputFormat
from pipelines.read.json_array import JsonArrayReader
from pipelines.read.record import BLOCK_BYTES, Record
from pipelines.read.split import split_file
from pipelines.read.value import UNUSABLE
from tests.pipelines.read.readings import Items, damages, values, written

FIELDS = ("content", "title")


def read(raw: bytes, folder: Path, *, block_bytes: int = BLOCK_BYTES) -> Items:
    """Return the items of a file."""
    file = written(folder / "part-1.json", raw)
    (split,) = split_file(file, file.bytes, form="json")
    reader = JsonArrayReader(split, InputFormat(text_fields=FIELDS))
    reader.block_bytes = block_bytes
    items = list(reader)
    assert reader.crc32c == google_crc32c.value(raw)
    assert reader.done == len(raw)
    return items


RECORDS: list[dict[str, Any]] = [
    {"id": index, "title": f"第{index}篇", "content": f"{'好' * index} {index}", "n": [1.5, None]}
    for index in range(6)
]


def compact(records: Any) -> bytes:
    return json.dumps(records, ensure_ascii=False, separators=(",", ":")).encode()


# Properties of arrays: JSON with blanks, odd values, and strings that look like records.

PIECES = [
    "好", "😀", "a b", "\\\\", '\\"', "},{", "[{", "}]", "]}", ",", ":", "{", "}", "[", "]", "\\n",
    '\\"content\\":\\"', '[{\\"content\\":', "\\ud83d\\ude00", "\\u0000", "RECORDS",
]  # fmt: skip
ODD = [
    '"\\ud800"', '"\\udc00\\ud800x"', "1e400", "-1e400", "9" * 400, "NaN", "-Infinity",
    "0." + "1" * 400, '"\\u00001"', "1E-999", "-0", "18446744073709551616",
]  # fmt: skip
KEYS = ["content", "title", "RECORDS", "n", "", "\\u0063ontent", "a\\ud800", '\\"', "好"]
BLANK = st.sampled_from(["", "", " ", "\n  ", "\t\r\n"])
STRING = st.lists(st.sampled_from(PIECES), max_size=4).map(lambda pieces: f'"{"".join(pieces)}"')
LEAF = STRING | STRING | st.sampled_from(["1.5e3", "true", "null", "-17", *ODD])


@st.composite
def joined(draw: Any, parts: Any, ends: str, *first: str, most: int = 3) -> str:
    items = [*first, *draw(st.lists(parts, max_size=most))]
    blank = draw(BLANK)
    return ends[0] + blank + f"{blank},{draw(BLANK)}".join(items) + draw(BLANK) + ends[1]


def member(keys: Iterable[str], value: Any) -> Any:
    return st.builds('"{}"{}:{}{}'.format, st.sampled_from([*keys]), BLANK, BLANK, value)


VALUE = st.recursive(
    LEAF, lambda inner: joined(inner, "[]") | joined(member(KEYS, inner), "{}"), max_leaves=6
)
OBJECT = joined(member(KEYS, VALUE), "{}")
PLAIN = STRING.flatmap(lambda text: joined(member(KEYS, VALUE), "{}", f'"content":{text}', most=1))
IMITATOR = st.builds('{{"content":{},"n":1}}'.format, joined(PLAIN, "[]"))


@st.composite
def files(draw: Any) -> tuple[bytes, list[str]]:
    """Return a file and the records in it."""
    records = draw(st.lists(OBJECT | PLAIN | IMITATOR, min_size=1, max_size=5))
    blanks = [draw(BLANK) for _ in range(4)]
    text = "[" + blanks[0] + f"{blanks[1]},{blanks[2]}".join(records) + blanks[3] + "]"
    if draw(st.booleans()):
        others = st.lists(member([key for key in KEYS if key != "RECORDS"], VALUE), max_size=2)
        text = (
            "{" + ",".join([*draw(others), f'"RECORDS" : {text}', *draw(others)]) + blanks[0] + "}"
        )
    return (draw(st.sampled_from(["", "\ufeff"])) + text + blanks[1]).encode(), records


def as_json_has_it(items: Items) -> Items:
    """Return the items with the values that Python's json gives, with names for odd values."""
    return [
        item._replace(value=by_name(item.value)) if isinstance(item, Record) else item
        for item in items
    ]


def by_name(value: Any) -> Any:
    if isinstance(value, dict):
        return {re.sub("[\ud800-\udfff]", "\ufffd", key): by_name(v) for key, v in value.items()}
    if isinstance(value, list):
        return [by_name(item) for item in value]
    if value is UNUSABLE or (isinstance(value, str) and re.search("[\ud800-\udfff]", value)):
        return "unusable"
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(str(value))
    return "nan" if isinstance(value, float) and math.isnan(value) else value


EDGES = st.lists(st.integers(0, 2**16), max_size=6)


def edges_in(numbers: Iterable[int], size: int) -> list[int]:
    return sorted({1 + number % (size - 1) for number in numbers}) if size > 1 else []


@given(file=files(), ends=EDGES, block_bytes=st.integers(1, 200))
@settings(max_examples=50, deadline=None)
def test_files_are_read_like_json_wherever_they_end(
    file: tuple[bytes, list[str]],
    ends: list[int],
    block_bytes: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    whole, records = file
    json.loads(whole)
    folder = tmp_path_factory.mktemp("files")
    complete = as_json_has_it(read(whole, folder))
    assert values(complete) == [by_name(json.loads(record)) for record in records]
    assert not damages(complete)
    for item in complete:
        assert isinstance(item, Record)
        assert whole[item.offset : item.offset + item.length] == item.raw
    for end in (*edges_in(ends, len(whole)), len(whole)):
        if end < max(2, complete[0].offset):
            continue
        raw = whole[:end]
        items = as_json_has_it(read(raw, folder))
        kept = [item for item in complete if item.offset + item.length <= end]
        assert items[: len(kept)] == kept
        assert len(items) - len(kept) <= 1
        assert not any(isinstance(item, Record) for item in items[len(kept) :])
        assert as_json_has_it(read(raw, folder, block_bytes=block_bytes)) == items


# Damage, and the records that are kept.


@pytest.mark.parametrize(
    ("raw", "kept", "named"),
    [
        (b" [ \n ] \n", "", []),
        (b'\xef\xbb\xbf{"RECORDS":[ ] }', "", []),
        # Damage in the last element.
        (b'[{"content":"a"},{"content": 01}]', "a", [(17, 15, "bad-json")]),
        (b'{"RECORDS":[{"content":"a"},{"content":1x}] , "n":3} ', "a", [(28, 14, "bad-json")]),
        (b'[{"content":"a"},rubbish', "a", [(17, 7, "truncated")]),
        (b'[{"content":"a"},17 ]', "a", [(17, 2, "not-an-object")]),
        (
            b'[{"content":"a"},' + b'{"a":' * 1500 + b"1" + b"}" * 1500 + b',{"content":"b"}]',
            "ab",
            [(17, 9001, "bad-json")],
        ),
        # Several damaged elements in succession.
        (
            b'[1,null,{"content":"\xff"},{"content":"a"}]',
            "a",
            [(1, 1), (3, 4), (8, 15, "bad-utf8")],
        ),
        (b'[{"content":0x},{"content":"\xff"},{"content":"a"}]', "a", [(1, 14), (16, 15)]),
        (b'[{"content":0x},{"content":1x},{"content":"a"}]', "a", [(1, 29, "bad-json")]),
        # Nested objects before damage may become records, which is better than losing records.
        (b'[{"list":[{"content":"b"}],"n":"x},{"content":"a"}]', "ba", [(1, 9), (27, 8)]),
        (b'[{"list":[{"content":"b"}],"n":1,{"content":"a"}]', "ba", [(1, 9), (27, 6)]),
        # Missing and extra commas lose no record.
        (b'[{"content":"a"} {"content":"b"},,{"content":"c"},]', "abc", []),
        # Bytes after the array.
        (b'[{"content":"a"}] x', "a", [(18, 1, "trailing-bytes")]),
        (b'[{"content":"a"}]\0\0\0', "a", [(17, 3, "trailing-bytes")]),
        (b'[{"content":"a"}]\n[{"content":"b"}]', "ab", [(18, 1, "trailing-bytes")]),
        (b'[{"content":"a"}]\n{"RECORDS":[{"content":"b"}]}', "ab", [(18, 12, "trailing-bytes")]),
        (b'[{"content":"a"}]{"content":"b"}', "a", [(17, 15, "trailing-bytes")]),
        (b'[{"content":"a"}],"more":[{"content":"b"}]}', "ab", [(18, 8, "trailing-bytes")]),
        (b'{"RECORDS":[{"content":"a"}],"n":{}} x', "a", [(37, 1, "trailing-bytes")]),
        # Other members of the object are not records; if they are invalid, all is damage up to the
        # next record.
        (b'{"b":[{"content":"no"}],"RECORDS":[{"content":"a"}],"n":[{"content":"no"}]}', "a", []),
        (b'{"RECORDS":[{"content":"a"}],"s":"],[{\\"content\\":\\"no\\"}",\n"z":{}} ', "a", []),
        (
            b'{"RECORDS":[{"content":"a"}],"s":"' + b"long " * 30_000 + b'","m":[{"content":"n"}]}',
            "a",
            [],
        ),
        (b'{"RECORDS":[{"content":"a"}],"n":[{"content":"no"}', "a", [(29, 21, "truncated")]),
        (b'{"RECORDS":[{"content":"a"}],"n":[1}, [{"content":"b"}]', "ab", [(29, 10)]),
    ],
)
def test_damage_costs_only_the_damaged_records(
    raw: bytes, kept: str, named: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    items = read(raw, tmp_path, block_bytes=100)
    assert "".join(value.get("content", "") for value in values(items)) == kept
    found = damages(items)
    assert [each[: len(name)] for each, name in zip(found, named, strict=True)] == named
    for size in (1, 9, 40):
        assert read(raw, tmp_path, block_bytes=size) == items


# Hostile records.


@pytest.mark.parametrize(
    "unit",
    [
        b'{"a":[',
        b',{"a":[[[[[[[[',
        b',{"a":"x',
        b',{"',
        b'{"content":"x","n":["' + b"x" * 4000 + b'",',
    ],
)
def test_hostile_damage_ends(unit: bytes, tmp_path: Path) -> None:
    """With these units, every brace seems to begin a record that ends far later or never."""
    records = RECORDS * 50
    raw = b"[" + unit * min(900, 200_000 // len(unit) + 850) + b"}," + compact(records)[1:]
    items = read(
        raw, tmp_path
    )  # this would take minutes if the reader tried each brace up to the end of the file
    assert values(items)
    assert values(items) == records[-len(values(items)) :]
