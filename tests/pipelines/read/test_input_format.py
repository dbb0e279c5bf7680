import errno
import gzip
import io
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.read.encoding import other_encoding
from pipelines.read.formats import open_reader, splits, stored_crc32c
from pipelines.read.peek import Peek
from shards.errors import UserError
from tests.pipelines.read.readings import (
    damages,
    input_file,
    input_format,
    read_file,
    values,
    written,
)

ARRAY = b'[{"text":"a"},{"text":"b"}]'
WRAPPED = b'\xef\xbb\xbf{"name":"x","RECORDS":[{"text":"a"},{"text":"b"}]}'
OBJECTS = b'\n{"text":"a"}\n{"text":"b"}\n'


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("a.json", ARRAY, "json"),
        ("a.json", WRAPPED, "json"),
        ("a.json", OBJECTS, "jsonl"),
        ("a.json", b'{"text":"' + b"x" * 100_000, "jsonl"),
        ("a.json", b'{"meta":{"RECORDS":[]}}\n', "jsonl"),
        ("a.json", b'{"version":"1 x","data":[{"text":"a"}]}\n', "json"),
        ("a.json", b'{"data":[{"text":"' + b"x" * 100_000, "json"),
        ("a.json", b'{\n "n": {"text": "c"},\n "data": [\n  {"text": "a"}]\n}', "json"),
        ("a.json", b'{"data":[{"body":"a"}]}', "jsonl"),
        ("a.json", b'{"text":"a","n":[{"text":"b"}]}', "jsonl"),
        ("a.json", b'{"n":[{"text":"b"}],"text":"a"}', "jsonl"),
        ("a.json", b'{"n":[{"text":"b"}]}\n{"n":[]}\n', "jsonl"),
        ("a.json", b'{"text":"a"\n{"text":"b"}\n', "jsonl"),
        ("a.json", b'\xef\xbb\xbf{\n "text": "a"\n}', "objects"),
        ("a.json", b'{"text": "a",\n "b": ["' + b"x" * 100_000, "objects"),
        ("a.json", b'{\n "text": "a",\n "n": [{"text": "b"}]\n}', "objects"),
        ("a.arrow", b"x", "arrow"),
        ("a.jsonl", ARRAY, "jsonl"),
        ("a.txt", OBJECTS, "lines"),
        ("a.json.gz", gzip.compress(ARRAY, mtime=0), "json"),
        ("a.json.gz", gzip.compress(OBJECTS, mtime=0), "jsonl"),
        ("part-00000", OBJECTS, "jsonl"),
        ("part-00000", ARRAY, "json"),
        ("part-00000.gz", gzip.compress(OBJECTS, mtime=0), "jsonl"),
    ],
)
def test_the_format_follows_from_name_and_first_bytes(
    name: str, raw: bytes, expected: str, tmp_path: Path
) -> None:
    file = written(tmp_path / name, raw)
    assert Peek(file.path, input_format()).format == expected
    assert Peek(file.path, input_format("lines")).format == "lines"


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("a.jsonl.gz", gzip.compress(OBJECTS, mtime=0)[:5]),
        ("a.jsonl", b"\xff rubbish\n" * 3 + OBJECTS),
        ("a.jsonl", b'{"text":"longer than what is looked at ' + b"x" * 100_000),
        ("a.jsonl", b'rubbish\n{"text":"without a line feed at the end"}'),
        ("a.jsonl", b'{"text":"half a pair \\ud800","odd":1e400}\n{"te'),
        ("a.json", b"\xef\xbb\xbf[\r\n  {}]"),
        ("a.json", b'{"a": "\\"RECORDS\\": [", "b": {"n": [-1.5e3, "]}"]}, "RECORDS": [{"id":1}]}'),
        ("a.json", b'[null, 3, {"id": 1}]'),
    ],
)
def test_damaged_files_are_not_refused(name: str, raw: bytes, tmp_path: Path) -> None:
    Peek(written(tmp_path / name, raw).path, input_format()).check()


@pytest.mark.parametrize(
    ("form", "raw", "texts", "named"),
    [
        ("objects", b'\xef\xbb\xbf{\n"text": "a"\n}\n\n{"text":\n "b"} {"text": "c"}', "abc", []),
        ("objects", b'{"n": [{"text": "no"}],\n"text": "a"},{"text": "b"}\n', "ab", []),
        ("objects", b'{"text":\n"a" "x"}\n{"text": "b"}', "b", [(0, 17, "bad-json")]),
        ("objects", b'{"text": "a"}\n{"text":\n"b" "x"}', "a", [(14, 17, "bad-json")]),
        ("objects", b'{"text": "a"}\n{"text":\n"b', "a", [(14, 11, "truncated")]),
        ("file", b"\xef\xbb\xbfa\r\nb\n", "a\nb\n", []),
        ("file", b" \n\n", "", []),
        ("file", b"a\xff", "", [(0, 2, "bad-utf8")]),
        ("file", b"x" * 9999, "", [(0, 9999, "too-long")]),
    ],
)
def test_files_that_are_never_cut(
    form: str, raw: bytes, texts: str, named: list[Any], tmp_path: Path
) -> None:
    how = input_format(form, max_record_bytes=5000)
    items = read_file(written(tmp_path / "a.json", raw), how)
    assert "".join(value["text"] for value in values(items)) == texts
    assert damages(items) == named
    mended = read_file(written(tmp_path / "b.json", raw), input_format(form, bad_utf8="replace"))
    assert len(mended) == len(items)


def test_records_after_those_of_a_list_are_not_lost(tmp_path: Path) -> None:
    for rest in (b'"text":"b"', b'"test":[{"text":"b"}]'):
        raw = b'{"train":[{"text":"' + b"a" * 99_000 + b'"}],' + rest + b"}"
        with pytest.raises(UserError, match=r"with 'te[sx]t' after that"):
            read_file(written(tmp_path / "a.json", raw), input_format())


def test_rows_of_arrow(tmp_path: Path) -> None:
    """Streams, which the library datasets writes, and files with a footer, whole and truncated."""
    table = pa.table({"text": ["a", "b\0", None, "d" * 3000], "page": ["x" * 9000] * 4})
    how = input_format(fields=("text",), max_record_bytes=2000)
    for kind in (pa.ipc.new_stream, pa.ipc.new_file):
        path = tmp_path / "a.arrow"
        with pa.OSFile(str(path), "wb") as sink, kind(sink, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=2):
                writer.write_batch(batch)
        items = read_file(input_file(path), how)
        assert values(items) == [{"text": "a"}, {"text": "b\0"}, {"text": None}]
        assert damages(items) == [(3, 1, "too-long")]
        assert read_file(input_file(path), input_format())[0].offset == 0
        Peek(str(path), how).check()
        written(path, path.read_bytes()[:30_000])
        items = read_file(input_file(path), how)
        assert values(items) == [{"text": "a"}, {"text": "b\0"}]
        assert damages(items) == [(2, 0, "truncated")]
        written(path, path.read_bytes()[:20])
        with pytest.raises(UserError, match="cannot be read as Arrow"):
            Peek(str(path), how).check()


def test_of_two_columns_with_one_name_the_last_counts(tmp_path: Path) -> None:
    columns = [pa.array(["a"]), pa.array([1]), pa.array([2])]
    table = pa.Table.from_arrays(columns, names=["text", "page", "page"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_stream(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    for name in ("a.parquet", "a.arrow"):
        assert values(read_file(input_file(tmp_path / name), input_format())) == [
            {"text": "a", "page": 2}
        ]


@pytest.mark.parametrize("nest", ["plain", "list", "object", "map", "dictionary", "indices"])
def test_wrong_offsets_in_arrow_are_damage(nest: str, tmp_path: Path) -> None:
    """pyarrow does not check offsets; if they are wrong, it reads beyond a buffer or crashes."""
    text = pa.array([b"a", b"b\xff\xffc", b"d"]).view(pa.string())
    column = {
        "plain": text,
        "list": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), text),
        "object": pa.StructArray.from_arrays([text], ["a"]),
        "map": pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), text, text),
        "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), text),
        "indices": pa.DictionaryArray.from_arrays(pa.array([0, 1, 5], pa.int32()), [*"abcdefg"]),
    }[nest]
    table = pa.table({"text": ["x", "y", "z"], "more": column})
    path = tmp_path / "a.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert len(values(read_file(input_file(path), input_format()))) == 3
    raw = path.read_bytes()
    harmed = raw.replace(struct.pack("<3i", 0, 1, 5), struct.pack("<3i", 0, 9, 5))
    assert harmed != raw
    items = read_file(written(path, harmed), input_format())
    assert (values(items), damages(items)) == ([], [(0, 0, "truncated")])


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("今天天气很好，我们去公园散步。".encode("gbk"), "GB18030 (GBK)"),
        ("{'text': '今天天气很好'}".encode("gb18030")[:-3], "GB18030 (GBK)"),
        ("今天天氣很好，我們去公園散步。".encode("big5"), "BIG5-HKSCS (Big5)"),
        ("{'text': '嗰啲人喺度嘅'，他們說這個}".encode("big5-hkscs")[:-3], "BIG5-HKSCS (Big5)"),
        ("今天天氣很好，我們去公園散步。".encode("gbk"), "GB18030 (GBK)"),
        ("今天天气很好，我们去公园散步。".encode(), None),
        ("今天天气很好，我们".encode()[:-1] + b"\xff" + "去公园散步。".encode(), None),
        (b"\xff\xff\xff", None),
        (
            "今日はとても良い天気なので、公園を散歩しました。".encode("shift_jis"),
            "CP932 (Shift-JIS)",
        ),
        ("{'text': '今日はとても良い天気'}".encode("euc_jp")[:-3], "EUC-JP"),
        ("오늘은 날씨가 좋아서 우리는 공원에 갔다.".encode("euc_kr"), "CP949 (EUC-KR)"),
        ("Сегодня хорошая погода, и мы пошли гулять в парк.".encode("cp1251"), None),
        ("Übung für Müßiggänger, gewöhnlich am Frühstückstisch".encode("latin-1"), None),
        ("Le café est fermé, la forêt a brûlé, l’été est passé.".encode("cp1252"), None),
    ],
)
def test_probable_encodings_are_named(head: bytes, expected: str | None) -> None:
    assert other_encoding(head) == expected


class Failing(io.FileIO):
    """An open file on a disk that fails."""

    def read(self, size: int | None = -1, /) -> bytes:  # noqa: ARG002 - as the base has it
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.txt", "a.jsonl.gz", "a.parquet"])
def test_a_failing_disk_is_reported_in_one_paragraph(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    if name == "a.parquet":
        pq.write_table(pa.table({"text": ["a", "b"]}), path)
    else:
        raw = b'[{"text": "a"}]' if name == "a.json" else b'{"text": "a"}\n'
        path.write_bytes(gzip.compress(raw, mtime=0) if name.endswith(".gz") else raw)
    file = input_file(path)
    (split,) = splits(file, input_format(), split_bytes=file.bytes)
    monkeypatch.setattr(Path, "open", lambda path, _: Failing(path))
    message = rf"Cannot read the input {path}: Input/output error\. Check the file and its disk"
    for task in (
        lambda: Peek(file.path, input_format()).check(),
        lambda: list(open_reader(split, input_format())),
        lambda: stored_crc32c(split),
    ):
        with pytest.raises(UserError, match=message):
            task()
