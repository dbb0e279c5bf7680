"""Records that are mended as they are read: the same ones in any format, each at its own place."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.inputs.files import match_inputs
from pipelines.readers.mending import REMOVE, REPLACE, mend_json
from pipelines.readers.reading import Reading, open_reader, splits
from pipelines.readers.record import Damage, Record

RECORDS = [
    b'{"text": "good"}',
    b'{"text": "caf\xe9 ' + b"x" * 100_000 + b'"}',
    rb'{"text": "half \ud800"}',
    rb'{"text": "nul \u0000 here", "more": ["\u0000"]}',
    b'{"text": "no end}',
    b'{"text": "good again"}',
]
TEXTS = ["good", "caf\ufffd " + "x" * 100_000, "half \ufffd", "nul  here", None, "good again"]


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


def read(path: Path, **how: Any) -> list[Record | Damage]:
    reading = Reading(text_fields=("text",), **how)
    (file,) = match_inputs([str(path)], pattern="*", default_name="a")
    (split,) = splits(file, reading, split_bytes=1 << 30)
    reader = open_reader(split, reading)
    items = list(reader)
    assert reader.link is not None
    assert reader.crc32c is not None
    return items


def texts(items: list[Record | Damage]) -> list[str | None]:
    return [item.value["text"] if isinstance(item, Record) else None for item in items]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b"\n".join(RECORDS)),
        ("a.json", b"[" + b",\n".join([*RECORDS[:4], *RECORDS[5:]]) + b"]"),
    ],
)
def test_records_of_json_are_mended_where_they_lie(
    name: str, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    plain, mended = read(path), read(path, bad_utf8=REPLACE, nul=REMOVE)
    places = [(item.offset, item.length) for item in plain]
    assert [(item.offset, item.length) for item in mended] == places
    assert texts(mended) == (TEXTS if name == "a.jsonl" else [*TEXTS[:4], *TEXTS[5:]])
    assert mended[3].value["more"] == [""]  # type: ignore[union-attr]  # a record
    assert isinstance(plain[1], Damage)
    assert plain[1].raw == RECORDS[1], "rejects are kept whole"


def test_lines_and_rows_are_mended(tmp_path: Path) -> None:
    lines = tmp_path / "a.txt"
    lines.write_bytes(b"good\ncaf\xe9\n")
    assert texts(read(lines, bad_utf8=REPLACE)) == ["good", "caf\ufffd"]
    assert texts(read(lines)) == ["good", None]
    bad = pa.array([b"caf\xe9", b"a\0b"], pa.binary()).view(pa.string())
    other = pa.array([b"\xff", b""], pa.large_binary()).view(pa.large_string())
    pq.write_table(pa.table({"text": bad, "other": other}), tmp_path / "a.parquet")
    items = read(tmp_path / "a.parquet", bad_utf8=REPLACE, nul=REMOVE)
    assert [item.value for item in items if isinstance(item, Record)] == [
        {"text": "caf\ufffd", "other": "\ufffd"},
        {"text": "ab", "other": ""},
    ]
