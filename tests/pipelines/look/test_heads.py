import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.look import heads
from pipelines.look.heads import HEAD_RECORDS, foreign, look_at
from tests.pipelines.look.shapes import CHINESE, SHAPES, write
from tests.pipelines.readers.readings import input_file

RECORD = SHAPES["openwebtext"]


def test_the_head_of_json_lines_estimates_the_rest(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [RECORD] * 40_000)
    assert path.stat().st_size > 10 * heads.HEAD_BYTES
    head = look_at(input_file(path))
    assert (head.form, head.wrapped, head.damaged) == ("jsonl", False, 0)
    assert len(head.records) == HEAD_RECORDS
    assert head.estimate == pytest.approx(40_000, rel=0.01)


def test_the_head_of_an_archive_estimates_the_rest(tmp_path: Path) -> None:
    lines = write(tmp_path / "a.jsonl", [{**RECORD, "n": n * n} for n in range(60_000)])
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(lines.read_bytes(), 1))
    head = look_at(input_file(path))
    assert head.form == "jsonl"
    assert head.estimate == pytest.approx(60_000, rel=0.3)


def test_a_wrapped_array(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"RECORDS": [RECORD] * 4}))
    head = look_at(input_file(path))
    assert (head.form, head.wrapped, head.estimate) == ("json", True, 4)


def test_a_table_is_not_read_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"text": [CHINESE.encode()] * 5000, "image": [b"\xff\x00"] * 5000})
    pq.write_table(table, tmp_path / "a.parquet")
    monkeypatch.setattr(heads, "HEAD_RECORDS", 7)
    head = look_at(input_file(tmp_path / "a.parquet"))
    assert (head.form, len(head.records), head.estimate) == ("parquet", 7, 5000)
    assert head.records[0].value == {"text": CHINESE, "image": b"\xff\x00"}


def test_places_have_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n\n{broken\n{"a": 2}\n[]\n')
    head = look_at(input_file(path))
    assert [*head.places] == [
        ("line 3", "bad-json"), ("line 5", "not-an-object"),
    ]  # fmt: skip
    assert (len(head.records), head.damaged) == (2, 2)


def test_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("这是一个在中国的人说的话，我们不是很了解他。\n".encode("gb18030") * 3)
    head = look_at(input_file(path))
    assert (len(head.records), head.damaged) == (0, 3)
    assert f"iconv -f GB18030 -t UTF-8 {path}" in head.hint


@pytest.mark.parametrize(
    ("name", "content", "refusal", "hint"),
    [
        ("a.jsonl", b"<!DOCTYPE html><html>", "holds no JSON lines", "a web page"),
        ("a.jsonl", b"WARC/1.0\r\n", "holds no JSON lines", "a WARC or WET"),
        ("a.jsonl", b"PK\x03\x04", "it is a zip archive", ""),
        ("a.json", b'"a"', "holds no JSON array", ""),
        ("a.jsonl.gz", b"{}", "is not a gzip archive", ""),
        ("a.parquet", b"PAR1", "cannot be read as Parquet", ""),
        ("a", b"%PDF-1.4", "Neither the name nor the first bytes", "a PDF"),
    ],
)
def test_what_cannot_be_read_is_said(
    name: str, content: bytes, refusal: str, hint: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    head = look_at(input_file(path))
    assert refusal in head.refusal
    assert head.hint.startswith(hint)
    assert bool(head.hint) == bool(hint)
    assert head.records == ()


def test_files_of_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.wet.gz"
    path.write_bytes(gzip.compress(b"WARC/1.0\r\n"))
    assert "docs/own.md" in foreign(str(path))
    path.write_bytes(b"\x01")
    assert foreign(str(path)) == ""


def test_pages_are_read_as_lines_but_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("<html><body>\nHello\n")
    head = look_at(input_file(path))
    assert (len(head.records), head.hint[:10]) == (2, "a web page")
    path.write_text("\n \n")
    assert look_at(input_file(path)).hint == "it holds no records"
