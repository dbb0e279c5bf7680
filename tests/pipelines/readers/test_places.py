import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from pipelines.readers.places import mend_json, mend_text, read_places
from pipelines.readers.record import Damage
from tests.pipelines.readers.readings import input_file, read_file, reading, values, written

LINES = b"".join((
    b'\xef\xbb\xbf{"text":"a"}\n\n{"text":"b\xff"}\r\n[]\n\xef\xbb\xbf{"text":"d","n":1e999}\n',
    b'{"text":"' + b"c" * 99 + b'"}\n{"te',
))  # fmt: skip
ARRAY = b'{"RECORDS":[{"text":"a"} , {"text":01},\n{"text":"b"}, 17 , {"text":"c"}'
TEXT = b"one<n>two\n\nb\xff\nthree"
FILES = {
    "a.jsonl": LINES,
    "a.jsonl.gz": gzip.compress(LINES, mtime=0),
    "a.json": ARRAY,
    "a.json.zst": zstandard.compress(ARRAY),
    "a.txt": TEXT,
    "a.txt.gz": gzip.compress(TEXT, mtime=0),
}


@pytest.mark.parametrize("name", FILES)
def test_what_was_read_is_read_again_by_its_place(name: str, tmp_path: Path) -> None:
    how = reading(max_record_bytes=60, newline="<n>")
    file = written(tmp_path / name, FILES[name])
    items = [item for item in read_file(file, how) if item.length]
    assert len(items) > 2
    places = [item[:2] for item in items]
    assert list(read_places(file.path, [*reversed(places), places[0]], how)) == items
    for item in items:
        assert list(read_places(file.path, [item[:2]], how)) == [item]
    assert list(read_places(file.path, [], how)) == []


def test_rows_are_read_again(tmp_path: Path) -> None:
    raw = pa.array([b"a", b"\xff", b"c", b"d", b"e"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": raw}), tmp_path / "a.parquet", row_group_size=2)
    file = input_file(tmp_path / "a.parquet")
    items = read_file(file, reading())
    assert list(read_places(file.path, [(4, 1), (1, 1), (0, 1)], reading())) == [
        items[0], items[1], items[4],
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_place_without_a_record_is_damage(name: str, tmp_path: Path) -> None:
    raw = b'{"text":"a"}\n'
    file = written(tmp_path / name, raw if name == "a.jsonl" else gzip.compress(raw, mtime=0))
    places = [(0, 12), (13, 0), (99, 4)]
    items = list(read_places(file.path, places, reading()))
    assert values(items) == [{"text": "a"}]
    assert items[1:] == [Damage(13, 0, "truncated", b""), Damage(99, 4, "truncated", b"")]


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
