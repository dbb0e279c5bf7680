"""Files that are damaged, or whose format differs from the one that the name says."""

import bz2
import gzip
import io
from collections.abc import Mapping
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq

from tests.refusals.refusal import Accepted, after_listing, after_reading, refused
from tests.refusals.setups import LINES, PAGES, TOKENIZER, Setup, all_of, page, with_file

OUT = f"{TOKENIZER} --output out"
TEXT = f"pipelines.text {OUT} --input in"
WUDAO = f"pipelines.wudao {OUT} --input in"
GZ = gzip.compress(LINES.encode(), mtime=0)
CUT = gzip.compress(LINES.encode() * 9, mtime=0)[:-9]
PAGES_OPEN = b"[" + b",".join(LINES.encode().splitlines())
OBJECT = b'{"text": "a"}\n'
BAD = b"rubbish\n"


def text(name: str, content: bytes | str) -> Setup:
    return with_file(f"in/{name}", content)


def wudao(content: bytes | str) -> Setup:
    return with_file("in/part-1.json", content)


@cache
def table(**columns: str) -> bytes:
    """Return a Parquet file with columns of these names and six rows in three groups."""
    written = io.BytesIO()
    texts = [page(number)["content"] for number in range(6)]
    pq.write_table(pa.table({name: texts for name in columns.values()}), written, row_group_size=2)
    return written.getvalue()


def long_row() -> bytes:
    """Return a Parquet file with 300 short rows and one long row."""
    written = io.BytesIO()
    pq.write_table(
        pa.table({"text": ["A short text in a few words."] * 300 + ["x" * 99_999]}), written
    )
    return written.getvalue()


def null_rows() -> bytes:
    """Return a Parquet file with two rows that lack a text."""
    written = io.BytesIO()
    pq.write_table(pa.table({"text": pa.nulls(2, pa.string()), "id": ["a", "b"]}), written)
    return written.getvalue()


def parquet(content: bytes) -> Setup:
    return text("a.parquet", content)


def some_broken(of: int) -> bytes:
    """Return this number of lines, the last of which is invalid."""
    lines = LINES.encode().splitlines(keepends=True)
    return b"".join([*(lines * of)[: of - 1], BAD])


ARRAYS = {
    "array: gzip": wudao(gzip.compress(b"[]", mtime=0)),
    "array: rar": wudao(b"Rar!\x1a\x07\x01\x00"),
    "array: UTF-16": wudao("[]".encode("utf-16")),
    "array: Parquet": wudao(b"PAR1xxxx"),
    "array: JSON lines": wudao(b'{"id": 1}\n{"id": 2}\n'),
    "array: one object": wudao(b'{"id": 1}'),
    "array: under a key within": wudao(b'{"meta": {"RECORDS": [{"id": 1}]}}'),
    "array: of numbers": wudao(b"[1,2,3]"),
}

FILES = {
    "lines: an array": text("a.jsonl", '[{"text":"a"}]\n'),
    "lines: an object over lines": text("a.jsonl", '{\n "text": "a"\n}\n'),
    "lines: GB 18030": text("a.jsonl", LINES.encode("gb18030")),
    "lines: UTF-16 without a mark": text("a.jsonl", LINES.encode("utf-16-le")),
    "lines: UTF-32": text("a.jsonl", LINES.encode("utf-32")),
    "lines: EUC-KR": text(
        "a.jsonl", '{"text": "오늘은 날씨가 좋아서 우리는 공원에 갔다."}\n'.encode("euc_kr")
    ),
    "lines: no gzip": text("a.jsonl.gz", LINES),
    "text: binary": text("a.txt", b"a\0b"),
    "parquet: JSON lines": parquet(LINES.encode()),
    "parquet: without text": parquet(table(a="content", b="url")),
    "parquet: column not UTF-8": parquet(table(a="text", b="wxyz").replace(b"wxyz", b"w\xff\xfez")),
}

DAMAGE = {
    "text: GB 18030": text("a.txt", (page(1)["content"] + "\n").encode("gb18030") * 9),
    "parquet: without its beginning": parquet(table(a="text")[100:]),
    "damage: gzip cut off": text("a.jsonl.gz", GZ[: len(GZ) // 2]),
    "cut: an archive after some lines": text("a.jsonl.gz", CUT),
    "cut: an array": text("a.json", PAGES_OPEN),
    "cut: an array in a record": text("a.json", PAGES_OPEN[:-40]),
    "cut: an array in an archive": text("a.json.gz", gzip.compress(PAGES_OPEN, mtime=0)[:-20]),
    "cut: an archive that is damaged": text("a.jsonl.bz2", bz2.compress(LINES.encode()) + b"x" * 9),
    "cut: two files": all_of(text("a.jsonl.gz", CUT), text("b.json", PAGES_OPEN)),
    "damage: no field of text": text("a.jsonl", '{"body": "a"}\n' * 3),
    "damage: text that is a number": text("a.jsonl", '{"text": 5}\n' * 3),
}

BODY, TITLED = '{"body": "bad"}\n', '{"summary": "a", "article": "the longest of all"}\n'
INNER = '{"id": null, "meta": {"text": "words"}}\n'

FIRST = {
    "all of two files are bad": {"a": BODY * 3, "b": '{"text": 3}\n' * 2},
    "the last of 1,001 is good": {"a": BODY * 1000 + '{"text": "good"}\n'},
    "one of two files is good": {"a": BODY * 5000, "b": '{"text": "good"}\n'},
    "one is empty": {"a": '{"text": ""}\n'},
}
"""The records of some files, by row name; a run first checks these records."""

DRIFT = {
    "another field": all_of(text("a.jsonl", LINES), text("b.jsonl", TITLED * 3)),
    "null": text("a.jsonl", LINES + '{"text": null, "id": "x"}\n' * 3),
    "a comma behind": text("a.jsonl", LINES + '{"text": "a"},\n' * 3),
    "a comment": text("a.jsonl", LINES + "// of May\n" * 3),
    "rows without a text": all_of(text("b.jsonl", LINES), parquet(null_rows())),
}
"""Files that contain some invalid records."""

SHAPES = {
    "columns of pandas": text("a.json", '{"text": {"0": "one text", "1": "another"}}'),
    "a list of records": text("a.json", '{"version": "1", "data": [{"body": "a text"}]}'),
    "texts by their names": text("a.json", '{"a.txt": "one text", "b.txt": "another"}'),
    "a field of few records": text("a.jsonl", '{"a": 1}\n' * 3 + '{"a": 1, "note": "a text"}\n'),
}
"""Files of records in a foreign format, none of which can be read."""

FIELDS = {"sumary": TITLED, "meta": INNER}
"""A record that lacks the text field, by the value of --text-field."""


LACKING = {
    "--provenance url": '{"text": "a", "URL": "https://a.org"}\n',
    "--provenance link=meta.ulr": '{"text": "a", "meta": {"url": "https://a.org"}}\n',
    "--id-field key": '{"text": "a", "id": 1}\n',
    "--id-field key --max-reject-rate 1": '{"body": "a"}\n{"text": "a"}\n',
}
"""A record that lacks the field that the flags name, by the flags."""


def files(contents: Mapping[str, str]) -> Setup:
    return all_of(*(text(f"{name}.jsonl", content) for name, content in contents.items()))


ARCHIVES = {
    "zip": b"PK\x03\x04xx",
    "7z": b"7z\xbc\xaf\x27\x1c",
    "xz": b"\xfd7zXZ\x00",
    "zstd": b"\x28\xb5\x2f\xfd\x00",
    "bzip2": bz2.compress(b"[]"),
}
"""The first bytes of archives, by kind of archive."""

ROWS = (
    *(
        after_listing(f"array: {kind}", WUDAO, setup=wudao(content))
        for kind, content in ARCHIVES.items()
    ),
    *(after_listing(name, WUDAO, setup=setup) for name, setup in ARRAYS.items()),
    *(after_listing(name, TEXT, setup=setup) for name, setup in FILES.items()),
    *(after_reading(name, TEXT, setup=setup) for name, setup in DAMAGE.items()),
    *(after_reading(f"first: {name}", TEXT, setup=files(each)) for name, each in FIRST.items()),
    *(
        after_reading(f"field {name}", f"{TEXT} --text-field {name}", setup=text("a.jsonl", record))
        for name, record in FIELDS.items()
    ),
    *(
        after_reading(f"lacking {flags}", f"{TEXT} {flags}", setup=text("a.jsonl", record))
        for flags, record in LACKING.items()
    ),
    Accepted(
        name="lacking a field in one of two sources",
        command=f"pipelines.text {OUT} --input x=good --input y=in --provenance url "
        "--languages all --language-threshold 0 --validation 0",
        setup=all_of(
            text("a.jsonl", OBJECT),
            with_file("good/a.jsonl", '{"text": "b"}\n' * 999 + '{"text": "c", "url": null}\n'),
        ),
        message=r"--provenance url: there is no field url in the first record of the source 'y'",
    ),
    after_reading(
        "first: of two sources",
        f"pipelines.text {OUT} --input x=good --input y=in",
        setup=all_of(text("a.jsonl", BODY), with_file("good/a.jsonl", LINES)),
    ),
    after_reading("array: GB 18030", WUDAO, setup=wudao(PAGES.encode("gb18030"))),
    after_reading(
        "array: empty", WUDAO, setup=wudao(b"[]"), found="0 documents | 0 kept | 0 dropped"
    ),
    after_listing(
        "parquet: a column that the schema says has no nulls, and the row groups that it has",
        TEXT,
        setup=parquet(table(a="text").replace(b"%\x02\x18\x04text", b"%\x00\x18\x04text")),
    ),
    refused(
        "parquet: packed", TEXT, setup=text("a.parquet.gz", gzip.compress(table(a="text"), mtime=0))
    ),
    after_listing(
        "parquet: packed, by its first bytes",
        f"{TEXT}/a.gz",
        setup=text("a.gz", gzip.compress(table(a="text"), mtime=0)),
    ),
    after_listing("unknown: CSV", f"{TEXT}/notes.csv", setup=text("notes.csv", "text\nx\n")),
    after_reading(
        "damage: just above 1 %",
        TEXT,
        setup=text("a.jsonl", some_broken(99)),
        found="99 documents | 6 kept | 93 dropped",
    ),
    after_reading(
        "damage: one long record of many",
        f"{TEXT} --max-record-bytes 5000",
        setup=text("a.jsonl", LINES * 40 + BODY.replace("bad", "x" * 99_999)),
        found="241 documents | 6 kept | 235 dropped",
    ),
    after_reading(
        "damage: one long row of many",
        f"{TEXT} --max-record-bytes 5000",
        setup=parquet(long_row()),
        found="301 documents | 1 kept | 300 dropped",
    ),
    *(after_reading(f"shape: {name}", TEXT, setup=setup) for name, setup in SHAPES.items()),
    after_listing(
        "arrow: cut off within its schema",
        TEXT,
        setup=text("a.arrow", b"\xff\xff\xff\xff\x80\x00\x00\x00" + b"x" * 20),
    ),
    Accepted(
        name="lines that look like a wrapped text",
        command=TEXT,
        setup=text(
            "a.txt", "It was a morning in spring when the old captain\nof the ship went " * 9
        ),
        message=r"each line of \S*a\.txt becomes a document, but the lines look like",
    ),
    *(after_reading(f"some unread: {name}", TEXT, setup=setup) for name, setup in DRIFT.items()),
    after_reading(
        "nothing left: quality",
        f"{TEXT} --quality en=gopher",
        setup=text("a.jsonl", '{"text": "An English sentence that nobody asked for."}\n'),
        found="1 documents | 0 kept | 1 dropped",
    ),
    Accepted(
        name="cut: archives and arrays are read as far as possible",
        command=f"{TEXT} --skip-unreadable",
        setup=all_of(
            text("a.jsonl.gz", CUT),
            text("b.json", PAGES_OPEN),
            text("c.parquet", table(a="text")[:-100]),
            text("d.jsonl", LINES),
        ),
        message=r"1 files or folders cannot be read and are left out: .*c\.parquet cannot be read "
        r"as Parquet: .*2 input files are incomplete and were read as far as possible .*"
        r"a\.jsonl\.gz is cut off: .*b\.json holds a JSON array that is not closed: ",
    ),
    Accepted(
        name="damage: 1 % of the records",
        command=TEXT,
        setup=text("a.jsonl", some_broken(100)),
        message="100 read = 6 kept",
    ),
    after_reading(
        "nothing left: another language",
        f"{TEXT} --languages ja",
        setup=text("a.jsonl", LINES),
        found="6 documents | 0 kept | 6 dropped",
    ),
)
