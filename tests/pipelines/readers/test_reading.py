import bz2
import errno
import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.readers.json_array import JsonArrayReader
from pipelines.readers.lines import LineReader
from pipelines.readers.parquet import ParquetReader
from pipelines.readers.reading import (
    Reading,
    check_head,
    format_of,
    open_reader,
    splits,
    stored_crc32c,
)
from pipelines.readers.record import Record
from shards.errors import UserError
from tests.pipelines.readers.readings import input_file, read_file, reading, values, written

ARRAY = b'[{"text":"a"},{"text":"b"}]'
WRAPPED = b'\xef\xbb\xbf{"name":"x","RECORDS":[{"text":"a"},{"text":"b"}]}'
OBJECTS = b'\n{"text":"a"}\n{"text":"b"}\n'


def parquet(folder: Path) -> bytes:
    pq.write_table(pa.table({"text": ["a", "b"]}), folder / "made")
    return (folder / "made").read_bytes()


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("a.json", ARRAY, "json"),
        ("a.json", WRAPPED, "json"),
        ("a.json", OBJECTS, "jsonl"),
        ("a.json", b'{"text":"' + b"x" * 100_000, "jsonl"),
        ("a.json", b'{"meta":{"RECORDS":[]}}\n', "jsonl"),
        ("a.json", b"rubbish", "json"),
        ("a.jsonl", ARRAY, "jsonl"),
        ("a.ndjson", b"x", "jsonl"),
        ("a.txt", OBJECTS, "lines"),
        ("a.parquet", b"x", "parquet"),
        ("a.json.gz", gzip.compress(ARRAY, mtime=0), "json"),
        ("a.json.gz", gzip.compress(OBJECTS, mtime=0), "jsonl"),
        ("a.json.gz", gzip.compress(OBJECTS, mtime=0)[:12], "json"),
        ("a.txt.bz2", bz2.compress(b""), "lines"),
        ("part-00000", OBJECTS, "jsonl"),
        ("part-00000", ARRAY, "json"),
        ("part-00000", b"PAR1....", "parquet"),
        ("part-00000.gz", gzip.compress(OBJECTS, mtime=0), "jsonl"),
    ],
)
def test_the_format_follows_from_name_and_first_bytes(
    name: str, raw: bytes, expected: str, tmp_path: Path
) -> None:
    file = written(tmp_path / name, raw)
    assert format_of(file.path, reading()) == expected
    assert format_of(file.path, reading("lines")) == "lines"


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "notes.md", b"# Notes")
    with pytest.raises(
        UserError, match=r"name nor .*notes\.md show its format: it begins with '# Notes'"
    ):
        check_head(file, reading())
    assert values(read_file(file, reading("lines"))) == [{"text": "# Notes"}]


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.parquet", "a.jsonl.gz", "a.json.bz2"])
def test_every_format_reads_the_same_records(name: str, tmp_path: Path) -> None:
    raw = {"a.json": ARRAY, "a.jsonl": OBJECTS, "a.parquet": parquet(tmp_path)}
    raw |= {"a.jsonl.gz": gzip.compress(OBJECTS, mtime=0), "a.json.bz2": bz2.compress(WRAPPED)}
    file = written(tmp_path / name, raw[name])
    check_head(file, reading())
    items = read_file(file, reading())
    assert values(items) == [{"text": "a"}, {"text": "b"}]
    assert all(isinstance(item, Record) and 0 < item.size < 100 for item in items)


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("json", JsonArrayReader),
        ("jsonl", LineReader),
        ("lines", LineReader),
        ("parquet", ParquetReader),
    ],
)
def test_open_reader(form: str, kind: type, tmp_path: Path) -> None:
    file = written(tmp_path / "a", parquet(tmp_path))
    (split,) = splits(file, reading(form), split_bytes=file.bytes)
    assert type(open_reader(split, reading(form))) is kind


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("a.json", b"text", r"a\.json holds no JSON array of objects: it begins with 'text'"),
        ("a.json", b"[1, 2]", r"is a JSON array, but not of objects"),
        ("a.json.gz", gzip.compress(b"[1]", mtime=0), r"is a JSON array, but not of objects"),
        ("a.jsonl", ARRAY + b"\n", r"holds no JSON lines: it is a JSON array"),
        ("a.jsonl", gzip.compress(OBJECTS, mtime=0), r"gzip archive, so unpack .* the ending \.gz"),
        ("a.jsonl.gz", OBJECTS, r"a\.jsonl\.gz is not a gzip archive, though its name says so"),
        ("a.jsonl.zst", gzip.compress(OBJECTS, mtime=0), r"is not a zstd archive, though"),
        ("a.txt", b"\0\0", r"holds no lines of text: it is binary"),
        ("a.parquet", OBJECTS, r"cannot be read as Parquet"),
        (
            "a.parquet.gz",
            gzip.compress(b"PAR1", mtime=0),
            r"is a gzip archive of a Parquet file.*unpack it",
        ),
    ],
)
def test_what_is_plainly_something_else_is_refused(
    name: str, raw: bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        check_head(written(tmp_path / name, raw), reading())


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a.jsonl.gz", gzip.compress(OBJECTS, mtime=0)[:5]),
        ("a.json.gz", gzip.compress(ARRAY, mtime=0)[:5]),
        ("a.jsonl.gz", gzip.compress(b"", mtime=0)),
        ("a.jsonl", b"\xff rubbish\n" * 3 + OBJECTS),
        ("a.json", WRAPPED),
    ],
)
def test_damage_is_no_reason_to_refuse_a_file(name: str, raw: bytes, tmp_path: Path) -> None:
    check_head(written(tmp_path / name, raw), reading())


def test_a_file_that_changed_is_refused(tmp_path: Path) -> None:
    for name, raw in (("a.jsonl", OBJECTS), ("a.parquet", parquet(tmp_path))):
        file = written(tmp_path / name, raw)
        (split,) = splits(file, reading(), split_bytes=file.bytes)
        Path(file.path).write_bytes(raw * 2)
        for task in (lambda s: list(open_reader(s, reading())), _crc32c):
            with pytest.raises(UserError, match=rf"{name} has \d+ bytes and had {len(raw)}"):
                task(split)


def _crc32c(split: Any) -> int:
    return stored_crc32c(split, reading())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"format": "csv"},
            r"format must be auto or one of \('json', 'jsonl', 'lines', 'parquet'\)",
        ),
        ({"max_record_bytes": 0}, r"max_record_bytes must be at least 1, not 0"),
    ],
)
def test_options_are_checked(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Reading(text_fields=("text",), **options)


class Failing(io.FileIO):
    """A file on a disk that fails."""

    def read(self, size: int | None = -1, /) -> bytes:  # noqa: ARG002 - as the base has it
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.txt", "a.jsonl.gz", "a.parquet"])
def test_a_disk_that_fails_is_one_paragraph(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        pq.write_table(pa.table({"text": ["a", "b"]}), path)
    else:
        raw = b'[{"text": "a"}]' if name == "a.json" else b'{"text": "a"}\n'
        path.write_bytes(gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)
    file = input_file(path)
    (split,) = splits(file, reading(), split_bytes=file.bytes)
    monkeypatch.setattr("pipelines.inputs.files._open_local", Failing)
    message = rf"Cannot read the input {path}: Input/output error\. Check the file and its disk"
    for task in (
        lambda: check_head(file, reading()),
        lambda: list(open_reader(split, reading())),
        lambda: stored_crc32c(split, reading()),
    ):
        with pytest.raises(UserError, match=message):
            task()
