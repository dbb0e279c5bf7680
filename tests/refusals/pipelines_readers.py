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


ARRAYS = {
    "array: gzip": (
        wudao(gzip.compress(b"[]", mtime=0)),
        "The input …/in/part-1.json holds no JSON array of objects: it is a gzip archive, so unpack"
        ' it first or give its name the ending .gz. Expected was [{...}, ...] or {"RECORDS":'
        " [{...}, ...]}, in UTF-8.",
    ),
    "array: rar": (
        wudao(b"Rar!\x1a\x07\x01\x00"),
        "The input …/in/part-1.json holds no JSON array of objects: it is a rar archive, so unpack"
        " it first.…",
    ),
    "array: UTF-16": (
        wudao("[]".encode("utf-16")),
        "The input …/in/part-1.json holds no JSON array of objects: it is UTF-16, so convert it to"
        " UTF-8 first.…",
    ),
    "array: Parquet": (
        wudao(b"PAR1xxxx"),
        "The input …/in/part-1.json holds no JSON array of objects: it is a Parquet file, so give"
        " its name the ending .parquet.…",
    ),
    "array: JSON lines": (
        wudao(b'{"id": 1}\n{"id": 2}\n'),
        "The input …/in/part-1.json holds no JSON array of objects: it has one object per line"
        " (JSON lines).…",
    ),
    "array: one object": (
        wudao(b'{"id": 1}'),
        "The input …/in/part-1.json holds no JSON array of objects: it is an object without the key"
        ' "RECORDS" near its start: \'{"id": 1}\'.…',
    ),
    "array: under a key within": (
        wudao(b'{"meta": {"RECORDS": [{"id": 1}]}}'),
        "The input …/in/part-1.json holds no JSON array of objects: it is an object without the key"
        ' "RECORDS" near its start: \'{"meta": {"RECORDS": [{"id": 1}]}}\'.…',
    ),
    "array: of numbers": (
        wudao(b"[1,2,3]"),
        "The input …/in/part-1.json is a JSON array, but not of objects: its first element begins"
        ' with \'1,2,3]\'. Expected was [{"title": ..., "content": ...}, ...].',
    ),
}

FILES = {
    "lines: an array": (
        text("a.jsonl", '[{"text":"a"}]\n'),
        "The input …/in/a.jsonl holds no JSON lines: it is a JSON array, which is read as the"
        ' format json. Expected was an object on each line, for example {"text": ...}, in UTF-8.',
    ),
    "lines: an object over lines": (
        text("a.jsonl", '{\n "text": "a"\n}\n'),
        "The input …/in/a.jsonl holds no JSON lines: its objects take several lines or are damaged:"
        ' \'{\\n "text": "a"\\n}\\n\'.…',
    ),
    "lines: GB 18030": (
        text("a.jsonl", LINES.encode("gb18030")),
        "The input …/in/a.jsonl holds no JSON lines: it is not UTF-8 and reads as GB18030 (GBK)"
        " does, so convert it first.…",
    ),
    "lines: no gzip": (
        text("a.jsonl.gz", LINES),
        "The input …/in/a.jsonl.gz is not a gzip archive, though its name says so: it begins with"
        " b'{\"te'. Fetch it again, or give it a name that says what it is.",
    ),
    "text: binary": (
        text("a.txt", b"a\0b"),
        "The input …/in/a.txt holds no lines of text: it is binary: it begins with 'a\\x00b'."
        " Expected was UTF-8.",
    ),
    "parquet: JSON lines": (
        parquet(LINES.encode()),
        "The input …/in/a.parquet cannot be read as Parquet: Parquet magic bytes not found in"
        " footer. Either the file is corrupted or this is not a parquet file. The footer at the"
        " end of the file says where the rows are; without it nothing can be read. Fetch the file"
        " again, or leave it out.",
    ),
    "parquet: without text": (
        parquet(table(a="content", b="url")),
        "The input …/in/a.parquet has no column 'text'; it has 'content', 'url'. Leave the file"
        " out, or choose the pipeline made for it, or name the column with the text: python -m"
        " pipelines.text --text-field NAME.",
    ),
    "parquet: column not UTF-8": (
        parquet(table(a="text", b="wxyz").replace(b"wxyz", b"w\xff\xfez")),
        "The input …/in/a.parquet cannot be read as Parquet: the name of a column is not UTF-8:"
        " b'w\\xff\\xfez'.…",
    ),
}

DAMAGE = {
    "text: GB 18030": (
        text("a.txt", (page(1)["content"] + "\n").encode("gb18030") * 9),
        "these records are not in UTF-8, and read as GB18030 (GBK) does. So nothing of the source"
        " 'text' can be read: all 9 records, of …/in/a.txt, are rejected (9 bad-utf8). The first"
        " one, at byte 0: 第1号工坊的老师傅每天清晨打开木门，…. Convert the files, as in: iconv -f"
        " GB18030 -t UTF-8 FILE > NEW.…",
    ),
    "parquet: without its beginning": (
        parquet(table(a="text")[100:]),
        "these records are bad-row-group: the row groups are damaged: fetch the files again. So"
        " nothing of the source 'text' can be read: all 6 records, of …/in/a.parquet, are rejected"
        " (6 bad-row-group). The first one, at number 0: . Is it the right folder, and the right"
        " corpus? python -m pipelines.look …/in/a.parquet says what there is.…",
    ),
    "damage: gzip cut off": (
        text("a.jsonl.gz", GZ[: len(GZ) // 2]),
        "these records are truncated: they end too early: fetch the files again. So nothing of the"
        " source 'text' can be read: all 1 records, of …/in/a.jsonl.gz, are rejected (1"
        ' truncated). The first one, at byte 0: {"text": "第0号工坊的老师傅每天清晨打开木门，'
        "先给炉子添上炭火，再把…. Is it the right folder, and the right corpus? python -m"
        " pipelines.look …/in/a.jsonl.gz says what there is.…",
    ),
    "damage: zstd cut off": (
        text("a.jsonl.zst", zstandard.compress(LINES.encode())[:-5]),
        "these records are truncated: they end too early: fetch the files again. So nothing of the"
        " source 'text' can be read: all 1 records, of …/in/a.jsonl.zst, are rejected (1"
        " truncated). The first one, at number 0: . Is it the right folder, and the right corpus?"
        " python -m pipelines.look …/in/a.jsonl.zst says what there is.…",
    ),
    "damage: no field of text": (
        text("a.jsonl", '{"body": "a"}\n' * 3),
        "--text-field text: these records have body. So nothing of the source 'text' can be read:"
        " all 3 records, of …/in/a.jsonl, are rejected (3 missing-field). The first one, at byte 0:"
        ' {"body": "a"}. Give the field that holds the text. Did you mean --text-field body?…',
    ),
    "damage: text that is a number": (
        text("a.jsonl", '{"text": 5}\n' * 3),
        "--text-field text: in these records it is of type number, not text; these records have"
        " text. So nothing of the source 'text' can be read: all 3 records, of …/in/a.jsonl, are"
        ' rejected (3 wrong-type). The first one, at byte 0: {"text": 5}. Give the field that'
        " holds the text.…",
    ),
}

ARCHIVES = {
    "zip": b"PK\x03\x04xx",
    "7z": b"7z\xbc\xaf\x27\x1c",
    "xz": b"\xfd7zXZ\x00",
    "zstd": b"\x28\xb5\x2f\xfd\x00",
    "bzip2": bz2.compress(b"[]"),
}
"""Archives by their first bytes."""

ROWS = (
    *(
        begun(
            f"array: {kind}",
            WUDAO,
            f"The input …/in/part-1.json holds no JSON array of objects: it is a {kind} archive, so"
            " unpack it first…",
            scene=wudao(content),
        )
        for kind, content in ARCHIVES.items()
    ),
    *(begun(name, WUDAO, says, scene=scene) for name, (scene, says) in ARRAYS.items()),
    *(begun(name, TEXT, says, scene=scene) for name, (scene, says) in FILES.items()),
    *(mapped(name, TEXT, says, scene=scene) for name, (scene, says) in DAMAGE.items()),
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
    mapped(
        "array: empty",
        WUDAO,
        "no document is left of this input (it holds no record): look at --languages,"
        " --language-threshold and the options of the corpus",
        scene=wudao(b"[]"),
        found="0 documents | 0 kept | 0 dropped",
    ),
    begun(
        "parquet: a column that the schema says has no nulls, and the row groups that it has",
        TEXT,
        "The input …/in/a.parquet cannot be read as Parquet: Definition level histogram size"
        " mismatch, size: 2, expected: 1. The footer at the end of the file says where the rows"
        " are; without it nothing can be read.…",
        scene=parquet(table(a="text").replace(b"%\x02\x18\x04text", b"%\x00\x18\x04text")),
    ),
    refused(
        "parquet: packed",
        TEXT,
        "No file in in matches '*.jsonl' or '*.ndjson' or '*.json' or '*.txt', also with .gz,"
        " .zst, .bz2, or '*.parquet'; in holds a.parquet.gz. To see what they are: python -m"
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
    mapped(
        "parquet: group damaged",
        TEXT,
        "33.33 % of the records cannot be read (2 bad-row-group), more than --max-reject-rate 0.01"
        " allows. Their positions and first bytes are in …/out/.work/map/*.rejects (Arrow files);"
        " mend the input, or allow more, and run the same command again",
        scene=parquet(table(a="text")[:4] + b"\xff" * 40 + table(a="text")[44:]),
        found="6 documents | 4 kept | 2 dropped",
    ),
    begun(
        "unknown: Markdown",
        f"{TEXT}/notes.md",
        "Neither the name nor the first bytes of the input …/in/notes.md show its format: it"
        " begins with '# Notes'. Give its name the right ending: .json, .jsonl, .txt or .parquet.",
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
    mapped(
        "damage: gzip with a wrong sum",
        TEXT,
        "14.29 % of the records cannot be read (1 bad-archive), more than --max-reject-rate 0.01"
        " allows.…",
        scene=text("a.jsonl.gz", GZ[:-8] + b"\xff" * 4 + GZ[-4:]),
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
        "damage: few records with the field of text",
        TEXT,
        "75.00 % of the records cannot be read (3 missing-field), more than --max-reject-rate 0.01"
        " allows.… and run the same command again. python -m pipelines.look PATH says which fields"
        " there are, and which corpus reads them",
        scene=text("a.jsonl", '{"text": "a"}\n' + '{"body": "a"}\n' * 3),
        found="4 documents | 0 kept | 4 dropped",
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
)
