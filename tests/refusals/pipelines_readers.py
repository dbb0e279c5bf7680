"""Files that are broken, or something else than their names say."""

import bz2
import gzip
import io
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from tests.refusals.refusal import begun, mapped, refused
from tests.refusals.scenes import LINES, PAGES, TOKENIZER, Scene, holding, page

OUT = f"{TOKENIZER} --output out"
TEXT = f"pipelines.text {OUT} --input in"
WUDAO = f"pipelines.wudao {OUT} --input in"
GZ = gzip.compress(LINES.encode(), mtime=0)
OBJECT = b'{"text": "a"}\n'
BAD = b"rubbish\n"


def text(name: str, content: bytes | str) -> Scene:
    return holding(f"in/{name}", content)


def wudao(content: bytes | str) -> Scene:
    return holding("in/part-1.json", content)


@cache
def table(**columns: str) -> bytes:
    """The bytes of a Parquet file of six rows of three groups, whose columns are named as given."""
    written = io.BytesIO()
    texts = [page(number)["content"] for number in range(6)]
    pq.write_table(pa.table({name: texts for name in columns.values()}), written, row_group_size=2)
    return written.getvalue()


def parquet(content: bytes) -> Scene:
    return text("a.parquet", content)


def some_broken(of: int) -> bytes:
    """Lines of which one of so many is broken."""
    lines = LINES.encode().splitlines(keepends=True)
    return b"".join([*(lines * of)[: of - 1], BAD])


ROWS = (
    # JSON arrays.
    begun(
        "array: gzip",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is a gzip archive, so unpack"
        ' it first or give its name the ending .gz. Expected was [{...}, ...] or {"RECORDS":'
        " [{...}, ...]}, in UTF-8.",
        scene=wudao(gzip.compress(b"[]", mtime=0)),
    ),
    begun(
        "array: rar",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is a rar archive, so unpack"
        " it first.…",
        scene=wudao(b"Rar!\x1a\x07\x01\x00"),
    ),
    begun(
        "array: zip",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is a zip archive, so unpack"
        " it first.…",
        scene=wudao(b"PK\x03\x04xx"),
    ),
    begun(
        "array: zstd",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is a zstd archive, so unpack"
        " it first or give its name the ending .zst.…",
        scene=wudao(b"\x28\xb5\x2f\xfd\x00"),
    ),
    begun(
        "array: 7z",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is a 7z archive, so unpack"
        " it first.…",
        scene=wudao(b"7z\xbc\xaf\x27\x1c"),
    ),
    begun(
        "array: xz",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is a xz archive, so unpack"
        " it first.…",
        scene=wudao(b"\xfd7zXZ\x00"),
    ),
    begun(
        "array: bz2",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is a bzip2 archive, so"
        " unpack it first or give its name the ending .bz2.…",
        scene=wudao(bz2.compress(b"[]")),
    ),
    begun(
        "array: UTF-16",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is UTF-16, so convert it to"
        " UTF-8 first.…",
        scene=wudao("[]".encode("utf-16")),
    ),
    mapped(
        "array: GB 18030",
        WUDAO,
        "these records are not in UTF-8, and read as GB18030 (GBK) does. So nothing of the source"
        " 'wudao' can be read: all 6 records, of …/in/part-1.json, are rejected (6 bad-utf8). The"
        ' first one, at byte 1: {"id": 0, "title": "工坊0", "dataType": "手艺", "content":'
        ' "第0号工坊的老师傅每天清晨打开木门，…"}. Convert the files, as in: iconv -f GB18030 -t'
        " UTF-8 FILE > NEW. To go on all the same, leave this source out of --input, or give"
        " --max-reject-rate 1",
        scene=wudao(PAGES.encode("gb18030")),
    ),
    begun(
        "array: Parquet",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is a Parquet file, so give"
        " its name the ending .parquet.…",
        scene=wudao(b"PAR1xxxx"),
    ),
    begun(
        "array: JSON lines",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it has one object per line"
        " (JSON lines).…",
        scene=wudao(b'{"id": 1}\n{"id": 2}\n'),
    ),
    begun(
        "array: one object",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is an object without the key"
        ' "RECORDS" near its start: \'{"id": 1}\'.…',
        scene=wudao(b'{"id": 1}'),
    ),
    begun(
        "array: under a small key",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is an object without the key"
        ' "RECORDS" near its start: \'{"records": [{"id": 1}]}\'.…',
        scene=wudao(b'{"records": [{"id": 1}]}'),
    ),
    begun(
        "array: under a key within",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it is an object without the key"
        ' "RECORDS" near its start: \'{"meta": {"RECORDS": [{"id": 1}]}}\'.…',
        scene=wudao(b'{"meta": {"RECORDS": [{"id": 1}]}}'),
    ),
    begun(
        "array: text",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it begins with 'plain text'.…",
        scene=wudao(b"plain text"),
    ),
    begun(
        "array: blanks",
        WUDAO,
        "The input …/in/part-1.json holds no JSON array of objects: it begins with ' '.…",
        scene=wudao(b" " * 70_000 + b"[]"),
    ),
    begun(
        "array: of numbers",
        WUDAO,
        "The input …/in/part-1.json is a JSON array, but not of objects: its first element begins"
        ' with \'1,2,3]\'. Expected was [{"title": ..., "content": ...}, ...].',
        scene=wudao(b"[1,2,3]"),
    ),
    begun(
        "array: of texts",
        WUDAO,
        "The input …/in/part-1.json is a JSON array, but not of objects: its first element begins"
        ' with \'"a","b"]\'. Expected was [{"title": ..., "content": ...}, ...].',
        scene=wudao(b'["a","b"]'),
    ),
    begun(
        "array: of arrays",
        WUDAO,
        "The input …/in/part-1.json is a JSON array, but not of objects: its first element begins"
        ' with \'[1]]\'. Expected was [{"title": ..., "content": ...}, ...].',
        scene=wudao(b"[[1]]"),
    ),
    mapped(
        "array: empty",
        WUDAO,
        "no document is left of this input (it holds no record): look at --languages,"
        " --language-threshold and the options of the corpus",
        scene=wudao(b"[]"),
        found="0 documents | 0 kept | 0 dropped",
    ),
    begun(
        "array: packed numbers",
        TEXT,
        "The input …/in/a.json.gz is a JSON array, but not of objects: its first element begins"
        ' with \'1]\'. Expected was [{"title": ..., "content": ...}, ...].',
        scene=text("a.json.gz", gzip.compress(b"[1]", mtime=0)),
    ),
    # JSON lines.
    begun(
        "lines: an array",
        TEXT,
        "The input …/in/a.jsonl holds no JSON lines: it is a JSON array, which is read as the"
        ' format json. Expected was an object on each line, for example {"text": ...}, in UTF-8.',
        scene=text("a.jsonl", '[{"text":"a"}]\n'),
    ),
    begun(
        "lines: an array over lines",
        TEXT,
        "The input …/in/a.jsonl holds no JSON lines: it is a JSON array, which is read as the"
        " format json.…",
        scene=text("a.jsonl", '[\n{"text":"a"}\n]'),
    ),
    begun(
        "lines: an object over lines",
        TEXT,
        "The input …/in/a.jsonl holds no JSON lines: its objects take several lines or are damaged:"
        ' \'{\\n "text": "a"\\n}\\n\'.…',
        scene=text("a.jsonl", '{\n "text": "a"\n}\n'),
    ),
    begun(
        "lines: text",
        TEXT,
        "The input …/in/a.jsonl holds no JSON lines: it begins with 'plain\\ntext\\n'.…",
        scene=text("a.jsonl", "plain\ntext\n"),
    ),
    begun(
        "lines: numbers",
        TEXT,
        "The input …/in/a.jsonl holds no JSON lines: it begins with '1\\n2\\n3\\n'.…",
        scene=text("a.jsonl", "1\n2\n3\n"),
    ),
    begun(
        "lines: zstd",
        TEXT,
        "The input …/in/a.jsonl holds no JSON lines: it is a zstd archive, so unpack it first or"
        " give its name the ending .zst.…",
        scene=text("a.jsonl", b"\x28\xb5\x2f\xfd\n"),
    ),
    begun(
        "lines: gzip",
        TEXT,
        "The input …/in/a.jsonl holds no JSON lines: it is a gzip archive, so unpack it first or"
        " give its name the ending .gz.…",
        scene=text("a.jsonl", GZ),
    ),
    begun(
        "lines: Parquet",
        TEXT,
        "The input …/in/a.jsonl holds no JSON lines: it is a Parquet file, so give its name the"
        " ending .parquet.…",
        scene=text("a.jsonl", b"PAR1\n\n"),
    ),
    begun(
        "lines: UTF-16",
        TEXT,
        "The input …/in/a.jsonl holds no JSON lines: it is UTF-16, so convert it to UTF-8 first.…",
        scene=text("a.jsonl", LINES.encode("utf-16")),
    ),
    begun(
        "lines: GB 18030",
        TEXT,
        "The input …/in/a.jsonl holds no JSON lines: it is not UTF-8 and reads as GB18030 (GBK)"
        " does, so convert it first.…",
        scene=text("a.jsonl", LINES.encode("gb18030")),
    ),
    begun(
        "lines: no gzip",
        TEXT,
        "The input …/in/a.jsonl.gz is not a gzip archive, though its name says so: it begins with"
        " b'{\"te'. Fetch it again, or give it a name that says what it is.",
        scene=text("a.jsonl.gz", LINES),
    ),
    begun(
        "lines: no zstd",
        TEXT,
        "The input …/in/a.jsonl.zst is not a zstd archive, though its name says so: it begins with"
        " b'\\x1f\\x8b\\x08\\x00'. Fetch it again, or give it a name that says what it is.",
        scene=text("a.jsonl.zst", GZ),
    ),
    begun(
        "lines: no bz2",
        TEXT,
        "The input …/in/a.jsonl.bz2 is not a bzip2 archive, though its name says so: it begins with"
        " b'\\x1f\\x8b\\x08\\x00'. Fetch it again, or give it a name that says what it is.",
        scene=text("a.jsonl.bz2", GZ),
    ),
    # Lines of text.
    begun(
        "text: zip",
        TEXT,
        "The input …/in/a.txt holds no lines of text: it is a zip archive, so unpack it first."
        " Expected was UTF-8.",
        scene=text("a.txt", b"PK\x03\x04xx"),
    ),
    begun(
        "text: gzip",
        TEXT,
        "The input …/in/a.txt holds no lines of text: it is a gzip archive, so unpack it first or"
        " give its name the ending .gz. Expected was UTF-8.",
        scene=text("a.txt", b"\x1f\x8b\x08"),
    ),
    begun(
        "text: UTF-16",
        TEXT,
        "The input …/in/a.txt holds no lines of text: it is UTF-16, so convert it to UTF-8 first."
        " Expected was UTF-8.",
        scene=text("a.txt", "text".encode("utf-16")),
    ),
    begun(
        "text: binary",
        TEXT,
        "The input …/in/a.txt holds no lines of text: it is binary: it begins with 'a\\x00b'."
        " Expected was UTF-8.",
        scene=text("a.txt", b"a\0b"),
    ),
    mapped(
        "text: GB 18030",
        TEXT,
        "these records are not in UTF-8, and read as GB18030 (GBK) does. So nothing of the source"
        " 'text' can be read: all 9 records, of …/in/a.txt, are rejected (9 bad-utf8). The first"
        " one, at byte 0: 第1号工坊的老师傅每天清晨打开木门，…. Convert the files, as in: iconv -f"
        " GB18030 -t UTF-8 FILE > NEW.…",
        scene=text("a.txt", (page(1)["content"] + "\n").encode("gb18030") * 9),
    ),
    # Parquet.
    begun(
        "parquet: JSON lines",
        TEXT,
        "The input …/in/a.parquet cannot be read as Parquet: Parquet magic bytes not found in"
        " footer. Either the file is corrupted or this is not a parquet file. The footer at the end"
        " of the file says where the rows are; without it nothing can be read. Fetch the file"
        " again, or leave it out.",
        scene=parquet(LINES.encode()),
    ),
    begun(
        "parquet: without its end",
        TEXT,
        "The input …/in/a.parquet cannot be read as Parquet: Parquet magic bytes not found in"
        " footer. Either the file is corrupted or this is not a parquet file.…",
        scene=parquet(table(a="text")[:-9]),
    ),
    begun(
        "parquet: the beginning alone",
        TEXT,
        "The input …/in/a.parquet cannot be read as Parquet: Parquet file size is 4 bytes, smaller"
        " than the minimum file footer (8 bytes).…",
        scene=parquet(table(a="text")[:4]),
    ),
    begun(
        "parquet: a column that the schema says has no nulls, and the row groups that it has",
        TEXT,
        "The input …/in/a.parquet cannot be read as Parquet: Definition level histogram size"
        " mismatch, size: 2, expected: 1. The footer at the end of the file says where the rows"
        " are; without it nothing can be read.…",
        scene=parquet(table(a="text").replace(b"%\x02\x18\x04text", b"%\x00\x18\x04text")),
    ),
    mapped(
        "parquet: without its beginning",
        TEXT,
        "these records are bad-row-group: the row groups are damaged: fetch the files again. So"
        " nothing of the source 'text' can be read: all 6 records, of …/in/a.parquet, are rejected"
        " (6 bad-row-group). The first one, at number 0: . Is it the right folder, and the right"
        " corpus? python -m pipelines.look …/in/a.parquet says what there is.…",
        scene=parquet(table(a="text")[100:]),
    ),
    begun(
        "parquet: without text",
        TEXT,
        "The input …/in/a.parquet has no column 'text'; it has 'content', 'url'. Leave the file"
        " out, or choose the pipeline made for it, or name the column with the text: python -m"
        " pipelines.text --text-field NAME.",
        scene=parquet(table(a="content", b="url")),
    ),
    begun(
        "parquet: without the named field",
        f"{TEXT} --text-field body",
        "The input …/in/a.parquet has no column 'body'; it has 'text'. Leave the file out, or"
        " choose the pipeline made for it, or name the column with the text: python -m"
        " pipelines.text --text-field NAME.",
        scene=parquet(table(a="text")),
    ),
    refused(
        "parquet: packed",
        TEXT,
        "No file in in matches '*.jsonl' or '*.ndjson' or '*.json' or '*.txt', also with .gz, .zst,"
        " .bz2, or '*.parquet'; in holds a.parquet.gz. To see what they are: python -m"
        " pipelines.look in.",
        scene=text("a.parquet.gz", gzip.compress(table(a="text"), mtime=0)),
    ),
    begun(
        "parquet: packed, by its first bytes",
        f"{TEXT}/a.gz",
        "The input …/in/a.gz is a gzip archive of a Parquet file, whose row groups cannot be found"
        " in it; unpack it first.",
        scene=text("a.gz", gzip.compress(table(a="text"), mtime=0)),
    ),
    begun(
        "parquet: column not UTF-8",
        TEXT,
        "The input …/in/a.parquet cannot be read as Parquet: the name of a column is not UTF-8:"
        " b'w\\xff\\xfez'.…",
        scene=parquet(table(a="text", b="wxyz").replace(b"wxyz", b"w\xff\xfez")),
    ),
    mapped(
        "parquet: group damaged",
        TEXT,
        "33.33 % of the records cannot be read (2 bad-row-group), more than --max-reject-rate 0.01"
        " allows. Their positions and first bytes are in …/out/.work/map/*.rejects (Arrow files);"
        " mend the input, or allow more, and run the same command again",
        scene=parquet(table(a="text")[:4] + b"\xff" * 40 + table(a="text")[44:]),
        found="6 documents | 4 kept | 2 dropped",
    ),
    # Names that say nothing.
    begun(
        "unknown: Markdown",
        f"{TEXT}/notes.md",
        "Neither the name nor the first bytes of the input …/in/notes.md show its format: it begins"
        " with '# Notes'. Give its name the right ending: .json, .jsonl, .txt or .parquet.",
        scene=text("notes.md", "# Notes"),
    ),
    begun(
        "unknown: CSV",
        f"{TEXT}/notes.csv",
        "Neither the name nor the first bytes of the input …/in/notes.csv show its format: it"
        " begins with 'text\\nx\\n'. Give its name the right ending: .json, .jsonl, .txt or"
        ' .parquet. CSV is read once it is Parquet: python -c "import pyarrow.csv as c,'
        " pyarrow.parquet as p; p.write_table(c.read_csv('FILE.csv'), 'FILE.parquet')\".",
        scene=text("notes.csv", "text\nx\n"),
    ),
    # Damage that is counted.
    mapped(
        "damage: gzip cut off",
        TEXT,
        "these records are truncated: they end too early: fetch the files again. So nothing of the"
        " source 'text' can be read: all 1 records, of …/in/a.jsonl.gz, are rejected (1"
        ' truncated). The first one, at byte 0: {"text": "第0号工坊的老师傅每天清晨打开木门，'
        "先给炉子添上炭火，再把…. Is it the right folder, and the right corpus? python -m"
        " pipelines.look …/in/a.jsonl.gz says what there is.…",
        scene=text("a.jsonl.gz", GZ[: len(GZ) // 2]),
    ),
    mapped(
        "damage: gzip cut off at once",
        TEXT,
        "these records are truncated: they end too early: fetch the files again. So nothing of the"
        " source 'text' can be read: all 1 records, of …/in/a.jsonl.gz, are rejected (1 truncated)."
        " The first one, at number 0: . Is it the right folder, and the right corpus? python -m"
        " pipelines.look …/in/a.jsonl.gz says what there is.…",
        scene=text("a.jsonl.gz", GZ[:5]),
    ),
    mapped(
        "damage: gzip with a wrong sum",
        TEXT,
        "14.29 % of the records cannot be read (1 bad-archive), more than --max-reject-rate 0.01"
        " allows.…",
        scene=text("a.jsonl.gz", GZ[:-8] + b"\xff" * 4 + GZ[-4:]),
        found="7 documents | 6 kept | 1 dropped",
    ),
    mapped(
        "damage: zstd cut off",
        TEXT,
        "these records are truncated: they end too early: fetch the files again. So nothing of the"
        " source 'text' can be read: all 1 records, of …/in/a.jsonl.zst, are rejected (1"
        " truncated). The first one, at number 0: . Is it the right folder, and the right corpus?"
        " python -m pipelines.look …/in/a.jsonl.zst says what there is.…",
        scene=text("a.jsonl.zst", zstandard.compress(LINES.encode())[:-5]),
    ),
    mapped(
        "damage: bz2 cut off",
        TEXT,
        "14.29 % of the records cannot be read (1 truncated), more than --max-reject-rate 0.01"
        " allows.…",
        scene=text("a.jsonl.bz2", bz2.compress(LINES.encode())[:-5]),
        found="7 documents | 6 kept | 1 dropped",
    ),
    mapped(
        "damage: array cut off",
        WUDAO,
        "25.00 % of the records cannot be read (1 unterminated-array), more than --max-reject-rate"
        " 0.01 allows.…",
        scene=wudao(PAGES[: len(PAGES) // 2]),
        found="4 documents | 3 kept | 1 dropped",
    ),
    mapped(
        "damage: no field of text",
        TEXT,
        "--text-field text: these records have body. So nothing of the source 'text' can be read:"
        " all 3 records, of …/in/a.jsonl, are rejected (3 missing-field). The first one, at byte 0:"
        ' {"body": "a"}. Give the field that holds the text. Did you mean --text-field body?…',
        scene=text("a.jsonl", '{"body": "a"}\n' * 3),
    ),
    mapped(
        "damage: text that is a number",
        TEXT,
        "--text-field text: in these records it is of type number, not text; these records have"
        " text. So nothing of the source 'text' can be read: all 3 records, of …/in/a.jsonl, are"
        ' rejected (3 wrong-type). The first one, at byte 0: {"text": 5}. Give the field that'
        " holds the text.…",
        scene=text("a.jsonl", '{"text": 5}\n' * 3),
    ),
    mapped(
        "damage: lines that are no JSON",
        TEXT,
        "11.11 % of the records cannot be read (1 bad-json), more than --max-reject-rate 0.01"
        " allows.…",
        scene=text("a.jsonl", some_broken(9)),
        found="9 documents | 6 kept | 3 dropped",
    ),
    mapped(
        "damage: just above 1 %",
        TEXT,
        "1.01 % of the records cannot be read (1 bad-json), more than --max-reject-rate 0.01"
        " allows.…",
        scene=text("a.jsonl", some_broken(99)),
        found="99 documents | 6 kept | 93 dropped",
    ),
    mapped(
        "damage: above what is allowed",
        f"{TEXT} --max-reject-rate 10%",
        "11.11 % of the records cannot be read (1 bad-json), more than --max-reject-rate 0.1"
        " allows.…",
        scene=text("a.jsonl", some_broken(9)),
        found="9 documents | 6 kept | 3 dropped",
    ),
    mapped(
        "damage: none is allowed",
        f"{TEXT} --max-reject-rate 0",
        "0.10 % of the records cannot be read (1 bad-json), more than --max-reject-rate 0 allows.…",
        scene=text("a.jsonl", some_broken(1000)),
        found="1,000 documents | 6 kept | 994 dropped",
    ),
    mapped(
        "nothing left: another language",
        f"{TEXT} --languages ja",
        "no document is left of this input (6 language): look at --languages, --language-threshold"
        " and the options of the corpus",
        scene=text("a.jsonl", LINES),
        found="6 documents | 0 kept | 6 dropped",
    ),
    mapped(
        "nothing left: texts too short",
        f"{WUDAO} --min-chars 5000",
        "no document is left of this input (6 too-short): look at --languages, --language-threshold"
        " and the options of the corpus",
        scene=wudao(PAGES),
        found="6 documents | 0 kept | 6 dropped",
    ),
    mapped(
        "nothing left: an empty archive",
        TEXT,
        "no document is left of this input (it holds no record): look at --languages,"
        " --language-threshold and the options of the corpus",
        scene=text("a.jsonl.gz", gzip.compress(b"", mtime=0)),
        found="0 documents | 0 kept | 0 dropped",
    ),
)
