"""Functions that write small corpora, with the same bytes on every call."""

import bz2
import gzip
import io
import json
import lzma
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import zstandard
from pyarrow import parquet

SAMPLE = Path(__file__).parents[2] / "pipelines" / "sample"
Record = Mapping[str, Any]


def tokenizer(folder: Path) -> None:
    """Write the sample's tokenizer as tok.model."""
    shutil.copyfile(SAMPLE / "sample.model", folder / "tok.model")


def articles(count: int, *, first: int = 0, language: str = "en") -> list[dict[str, str]]:
    """Return articles of the sample, each with its title, text and id."""
    found = []
    for path in sorted(SAMPLE.glob("part-*.json")):
        pages = json.loads(path.read_text("utf-8"))
        for page in pages["RECORDS"] if isinstance(pages, dict) else pages:
            text = page.get("content")
            if isinstance(text, str) and len(text) > 150 and _written(text, language):
                found.append(
                    {"id": page["uniqueKey"][:8], "title": page.get("title", ""), "text": text}
                )
    return found[first : first + count]


def _written(text: str, language: str) -> bool:
    letters = sum(char.isascii() for char in text)
    return letters > 0.9 * len(text) if language == "en" else letters < 0.2 * len(text)


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file, compressed as its name's ending says, with the same bytes on every call."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(compressed(data, path.suffix.lower()))


def compressed(data: bytes, ending: str) -> bytes:
    """Return data compressed as `ending` says, or unchanged if that is no archive's ending."""
    compressors: Mapping[str, Callable[[bytes], bytes]] = {
        ".gz": _gzip,
        ".zst": zstandard.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
    }
    return compressors.get(ending, bytes)(data)


def _gzip(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


def write_jsonl(path: Path, records: Iterable[Record | bytes], *, end: str = "\n") -> None:
    """Write JSON lines; a record given as bytes is written as it is."""
    write_file(path, b"".join(json_line(record) + end.encode() for record in records))


def json_line(record: Record | bytes) -> bytes:
    return record if isinstance(record, bytes) else json.dumps(record, ensure_ascii=False).encode()


def write_json_array(
    path: Path, records: Iterable[Record | bytes], *, between: str = ",\n "
) -> None:
    """Write an array of JSON objects."""
    write_file(path, b"[\n " + between.encode().join(map(json_line, records)) + b"\n]\n")


def write_parquet(path: Path, records: Sequence[Record], *, group: int = 1000) -> None:
    """Write Parquet with `group` rows in each row group."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist([*records]), path, row_group_size=group)


# ---- boundaries of splits -----------------------------------------------------------------------


def _deceptive_records() -> list[dict[str, Any]]:
    """Return records whose texts look like separators of records."""
    texts = (
        "plain words",
        'a "quoted" } , { brace',
        '[{"text": "not a record"}, {\'x\': 1}]',
        "back\\slash at the end \\",
        "line\nbreak and\ttab",
        "中文字 with é and 😀",
    )
    nested = {"deep": [{"in": "one"}, {"in": "two"}], "empty": {}}
    return [{"id": f"r{at}", "text": text, "meta": nested} for at, text in enumerate(texts)]


def split_boundaries(folder: Path) -> None:
    """Write the same records in all formats, with white space in which a split may begin."""
    records = _deceptive_records()
    write_json_array(folder / "in/array.json", records)
    write_json_array(folder / "in/tight.json", records, between=",")
    inner = {"meta": [{"text": "an inner one"}, {"text": "another"}]}
    write_json_array(folder / "in/imitating.json", [{**record, **inner} for record in records])
    rows = json.dumps(records, ensure_ascii=False, indent=1)
    write_file(
        folder / "in/wrapped.json", f'{{"about": [1, {{"a": "b"}}], "RECORDS": {rows}, "n": 2}}'
    )
    write_jsonl(folder / "in/plain.jsonl", records)
    write_file(folder / "in/unended.jsonl", b"\n".join(map(json_line, records)))
    write_file(
        folder / "in/marked.jsonl", b"\xef\xbb\xbf" + b"\r\n\r\n".join(map(json_line, records))
    )
    for kind in ("gz", "zst", "bz2"):
        write_jsonl(folder / f"in/packed.jsonl.{kind}", records)
    write_json_array(folder / "in/packed.json.gz", records)
    flat = [{"id": record["id"], "text": record["text"]} for record in records]
    write_parquet(folder / "in/table.parquet", flat, group=2)
    write_parquet(folder / "in/single.parquet", flat, group=1)


def lines(folder: Path) -> None:
    """Write texts on lines, some lines blank, with several line ends and a sign for line breaks."""
    texts = ("first line", "", "second<n>with break", "  spaces  ", "third\r", "中文第四行", "last")
    write_file(folder / "lines/a.txt", "\n".join(texts))
    write_file(folder / "lines/b.txt", "\ufeff" + "\n".join(texts) + "\n")
    write_file(folder / "lines/c.txt.gz", "\n".join(texts) + "\n\n")


# ---- folders with all kinds of files ------------------------------------------------------------

_HIDDEN = ("in/.DS_Store", "in/._a.jsonl", "in/.old/x.jsonl", "in/_temporary/0/part-0.json")
_READ = ("in/a.jsonl", "in/b.JSONL", "in/c.jsonlines", "in/d.jsonl.GZ", "in/e.ndjson.xz")
_SERIES = (0, 1, 3)


def mixed(folder: Path) -> None:
    """Write files of which some are read and some are not, as endings, starts or numbers decide."""
    names = [*_READ, *_HIDDEN, "in/a.txt.bz2"]
    names += [f"in/train-{number:05}-of-00008.jsonl" for number in _SERIES]
    for name, page in zip(names, articles(len(names)), strict=True):
        write_jsonl(folder / name, [page])
    (page,) = articles(1, first=20)
    write_json_array(folder / "in/part-1.json", [{**page, "content": page["text"]}])
    write_jsonl(folder / "bench/a.jsonl", articles(1, first=40))
    for name in (
        "bench/b.csv",
        "in/f.csv",
        "in/sub/g.csv.gz",
        "in/README.md",
        "in/old.tar.gz",
        "in/_SUCCESS",
    ):
        write_file(folder / name, "text\nno\n")


def more_mixed_files(folder: Path) -> None:
    """Write the files of a second day: one that is read, one that is not, and a copy."""
    write_jsonl(folder / "in/new.jsonl", articles(1, first=30))
    write_jsonl(folder / "in/a.jsonl.zst", articles(1))
    write_file(folder / "in/new.tsv", "text\nno\n")


# ---- packed files -------------------------------------------------------------------------------

_FRAMES = {
    "first": 0x184D2A50,
    "last": 0x184D2A5F,
    "below": 0x184D2A4F,
    "beyond": 0x184D2A60,
}
"""Magic numbers of zstd: the first and last of skippable frames, and the numbers next to these."""


def packed(folder: Path) -> None:
    """Write archives of several parts: skippable, cut off, damaged, or with bytes after them."""
    for name, number in _FRAMES.items():
        frame = number.to_bytes(4, "little") + (5).to_bytes(4, "little") + b"notes"
        parts = [_packed_line("zst", f"{name}-{part}") for part in range(2)]
        if name in ("first", "last"):
            write_raw(folder / f"packed/{name}-before.jsonl.zst", frame + b"".join(parts))
        write_raw(folder / f"packed/{name}-between.jsonl.zst", frame.join(parts))
    for kind in ("gz", "zst", "bz2", "xz"):
        parts = [_packed_line(kind, f"{kind}-{part}") for part in range(3)]
        whole = b"".join(parts)
        write_raw(folder / f"packed/parts.jsonl.{kind}", whole)
        write_raw(folder / f"packed/zeros.jsonl.{kind}", whole + bytes(700))
        write_raw(folder / f"packed/behind.jsonl.{kind}", whole + b"no part")
        write_raw(folder / f"packed/cut.jsonl.{kind}", whole[: -len(parts[2]) // 2])
        damaged = bytearray(whole)
        damaged[len(parts[0]) + len(parts[1]) // 2] ^= 0xFF
        write_raw(folder / f"packed/harmed.jsonl.{kind}", bytes(damaged))


def _packed_line(kind: str, name: str) -> bytes:
    text = " ".join(f"{name} says word {number}" for number in range(40))
    return compressed(json.dumps({"id": name, "text": text}).encode() + b"\n", f".{kind}")


def write_raw(path: Path, content: bytes) -> None:
    """Write bytes unchanged, whatever the ending of the file's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# ---- limits of a record -------------------------------------------------------------------------

_LIMIT = 200


def _record_of_size(size: int, name: str) -> bytes:
    """Return a line of JSON with this number of bytes."""
    bare = json_line({"id": name, "text": ""})
    return json_line({"id": name, "text": ("word " * size)[: size - len(bare) - 1] + "."})


def _records_around_limit(limit: int) -> list[bytes]:
    sizes = (limit - 1, limit, limit + 1, 60, 5 * limit, limit, limit + 1)
    return [_record_of_size(size, f"{at}-of-{size}") for at, size in enumerate(sizes)]


def size_limits(folder: Path) -> None:
    """Write records on both sides of a size limit, in all formats and for a custom corpus."""
    copy_scripts("narrow_own.py")(folder)
    records = _records_around_limit(_LIMIT)
    write_json_array(folder / "narrow/a.json", records)
    write_json_array(folder / "narrow/harmed.json", _invalid_records(_LIMIT))
    write_file(folder / "narrow/a.jsonl", b"\n".join(records))
    write_file(folder / "narrow/b.jsonl", b"\n".join(records[:-1]))
    write_file(folder / "huge/a.jsonl", b"\n".join([_record_of_size(70_000, "huge"), *records[:2]]))
    write_json_array(folder / "huge/a.json", [_record_of_size(70_000, "huge"), *records[:2]])
    long = [("text " * size)[: size - 1] + "!" for size in (199, 200, 201, 20, 999, 200, 201)]
    write_file(folder / "narrow/a.txt", "\n".join(long))
    write_file(folder / "narrow/b.txt", "\n".join(long[:-1]))
    rows = [{"id": f"of-{len(text)}", "text": text} for text in long]
    write_parquet(folder / "table/a.parquet", rows, group=3)
    # All values of a record count: 12 bytes of the id, and the text.
    owned = [("page " * size)[: size - 1] + "." for size in (187, 188, 189, 20)]
    write_file(folder / "own/a.own", "\n".join(owned) + "\n")


def _invalid_records(limit: int) -> list[bytes]:
    """Return invalid records one byte below, at and above the limit, each before a valid one."""
    found = []
    for size in (limit - 1, limit, limit + 1):
        whole = _record_of_size(size, f"harmed-{size}")
        found += [whole.replace(b": ", b"; ", 1), _record_of_size(limit - 9, f"after-{size}")]
    return found


# ---- rejects ------------------------------------------------------------------------------------


def _nested(depth: int, inner: bytes = b"") -> bytes:
    name = b"deep-%d%s" % (depth, inner)
    value = b"[" * depth + inner + b"]" * depth
    return b'{"id": "%s", "text": "Deep one %d.", "x": %s}' % (name, depth, value)


LONG = 69_996
"""The number of bytes of the longest of these records: more than a reject keeps."""


def _broken() -> list[bytes]:
    good = [
        json_line({"id": f"good-{at}", "text": f"A good record, number {at}."}) for at in range(4)
    ]
    head, tail = b'{"id": "nul-long", "text": "a long text, and at its end a nul: ', b'\\u0000"}'
    return [
        good[0],
        head + b"word " * ((LONG - len(head) - len(tail)) // 5) + tail,
        b'{"id": "no-text", "other": 1}',
        b'{"id": "null-text", "text": null}',
        b'{"id": "number", "text": 7}',
        b'{"id": "list", "text": ["a"]}',
        b'{"id": "syntax", "text": "no comma" "x": 1}',
        good[1],
        b'{"id": "comma", "text": "a comma too many.",}',
        b'{"id": "utf8", "text": "bad \xff byte."}',
        b'{"id": "utf8-else", "text": "bad byte elsewhere.", "x": "\xff"}',
        b'{"id": "nul", "text": "a nul \\u0000 inside."}',
        b'{"id": "nul-else", "text": "a nul elsewhere.", "x": "\\u0000"}',
        b'{"id": "half", "text": "half a pair \\ud800 here."}',
        b'{"id": "half-else", "text": "half a pair elsewhere.", "x": "\\ud800"}',
        b'{"id": "half-key", "text": "half a pair in a key.", "\\ud800": 1}',
        b'{"id": "huge", "text": "a huge number.", "x": 1e999, "y": -1e999}',
        b'{"id": "nan", "text": "no number.", "x": NaN, "y": [Infinity, -Infinity]}',
        b'{"id": "twice", "text": "the first text.", "text": "the second text."}',
        _nested(1022),
        _nested(1023),
        _nested(1024),
        _nested(1500),
        _nested(1022, b"1e999"),
        _nested(1023, b"1e999"),
        _nested(1024, b"1e999"),
        b'{"id": "empty", "text": ""}',
        b'{"id": "blank", "text": "  \\n "}',
        good[2],
    ]


def broken(folder: Path) -> None:
    """Write records with one fault each, on lines and in an array."""
    records = _broken()
    loose = [b"[1, 2]", b"17", b'"text"', b"null", b"not JSON at all", b"{"]
    write_jsonl(folder / "broken/lines.jsonl", [*records, *loose])
    write_json_array(folder / "broken/array.json", [*records, *loose[:4]])
    whole = b"[" + b", ".join([records[0], records[7]])
    write_file(folder / "broken/open.json", whole)
    write_file(folder / "broken/cut.json", whole + b', {"id": "cut", "text": "cut off')
    write_file(folder / "broken/trailing.json", whole + b"] and more")
    write_file(folder / "broken/text.txt", b"fine line\nbad \xff line\nlast line")
    packed = _gzip(b"\n".join([records[0], records[7], _record_of_size(3000, "long"), records[-1]]))
    write_raw(folder / "broken/cut.jsonl.gz", packed[:-20])
    write_parquet(folder / "broken/good.parquet", [{"id": "row", "text": "A row of a table."}])


# ---- tables -------------------------------------------------------------------------------------


def tables(folder: Path) -> None:
    """Write Parquet with columns of many types, bad bytes, unusual values, and damage."""
    texts = [b"A plain text.", b"Bad \xff byte.", None, "中文".encode(), b"", b"A last text."]
    when = pa.array([0, 1000, -1, None, 2**62, 5], pa.timestamp("ns"))
    others = {
        "id": pa.array([f"row-{at}" for at in range(6)]).dictionary_encode(),
        "x": pa.array([b"fine", b"\xff", b"z", None, b"", b"q"]).view(pa.string()),
        "when": when,
        "day": pa.array([0, 1, 2, 3, None, 5], pa.date32()),
        "much": pa.array([1.5, float("nan"), float("inf"), None, 0, -1]),
        "inner": pa.array([{"a": 1}, None, {"a": 2}, {"a": None}, {"a": 5}, {"a": 6}]),
    }
    kinds = {
        "string": pa.array(texts).view(pa.string()),
        "binary": pa.array(texts),
        "large": pa.array(texts, pa.large_binary()).view(pa.large_string()),
        "dictionary": pa.array(["same", "other", None, "same", "", "last"]).dictionary_encode(),
        "number": pa.array([1, 2, 3, 4, 5, 6]),
    }
    (folder / "tables").mkdir()
    for name, column in kinds.items():
        table = pa.table({"text": column, **others})
        parquet.write_table(table, folder / f"tables/{name}.parquet", row_group_size=2)
    path = folder / "tables/harmed.parquet"
    rows = [{"id": f"h{at}", "text": f"Row number {at}. " * 20} for at in range(9)]
    write_parquet(path, rows, group=3)
    content = bytearray(path.read_bytes())
    middle = parquet.ParquetFile(path).metadata.row_group(1).column(1).data_page_offset
    content[middle : middle + 40] = bytes(40)
    path.write_bytes(content)


# ---- formats of the corpora ---------------------------------------------------------------------


def _text_of_size(size: int, word: str = "word") -> str:
    """Return a text of this number of characters."""
    return f"{word} " * (size // (len(word) + 1)) + "." * (size % (len(word) + 1))


def shapes(folder: Path) -> None:
    """Write a few records of every corpus, on both sides of the corpus's rules."""
    write_jsonl(folder / "zhihu/a.jsonl", _zhihu())
    write_jsonl(folder / "zhidao/a.jsonl", _zhidao())
    write_jsonl(folder / "baike/a.jsonl", _baike())
    write_jsonl(folder / "cc_news/a.jsonl", _cc_news())
    write_jsonl(folder / "openwebtext/a.jsonl", _openwebtext())
    write_jsonl(folder / "pile/00.jsonl", _pile())
    write_jsonl(folder / "pile/01.jsonl.zst", _pile(first=100))
    write_jsonl(folder / "pile/val.jsonl", _pile())
    write_parquet(folder / "fineweb/a.parquet", _fineweb())
    write_json_array(folder / "wudao/part-1.json", _wudao())
    write_jsonl(folder / "fields/a.jsonl", _fields())


def _zhihu() -> list[Record]:
    def one(answer: str, votes: object, **more: object) -> Record:
        return {"q_title": "为什么", "ans-content": answer, "ans-up-num": votes, **more}

    return [
        one(_text_of_size(100), "1000"),
        one(_text_of_size(101), "0"),
        one("short, 1001", "1001"),
        one("short, 1000", "1000"),
        one("short, a number of votes", 1001),
        one("short, 18 digits", "9" * 18),
        one("short, 19 digits", "0" * 19),
        one("short, 18 zeros", "0" * 18),
        one("short, no digits", "1001a"),
        one("abcd", "3"),
        one("abcd", "2"),
        one("abcde", ""),
        one(_text_of_size(120, "about"), "1", **{"q-content": "问" * 100, "user-signature": "u"}),
        one(_text_of_size(130, "about"), "1", **{"q-content": "问" * 101, "user-signature": None}),
        {"q_title": "no answer"},
        {"ans-content": _text_of_size(110)},
        one(_text_of_size(140), "1", **{"q-content": 5}),
    ]


def _zhidao() -> list[Record]:
    def one(title: object, best: object, *others: object) -> Record:
        return {"title": title, "best_answer": best, "other_answers": [*others]}

    def answer(size: int) -> Record:
        return {"content": _text_of_size(size, "said")}

    return [
        one("best 10", answer(10)),
        one("best 11", answer(11)),
        one("others", answer(12), answer(100), answer(101), {}, {"content": None}),
        one("others of 11 and 12", {}, answer(11), answer(12)),
        one("best 4 and 5", answer(4), answer(5)),
        one("", answer(50)),
        one(None, answer(50)),
        one("no answers", {}),
        {"title": "nothing"},
        {"title": "no list", "other_answers": {"content": "x"}},
        {"title": "no mapping", "other_answers": ["x"]},
        one("wrong best", "text"),
        one(7, answer(50)),
        {**one("about", answer(50)), "content": "问" * 101},
    ]


def _baike() -> list[Record]:
    return [
        {"title": "all", "abstract": "An abstract.", "content": "And a content."},
        {"title": "", "abstract": "No title.", "content": None},
        {"title": "only a title"},
        {"content": "only content"},
        {"title": "", "content": ""},
        {"other": "none of them"},
        {"title": 5, "content": "wrong title"},
    ]


def _cc_news() -> list[Record]:
    def one(body: str, **more: object) -> Record:
        return {"maintext": body, "url": f"https://n.org/{len(body)}", **more}

    return [
        one(_text_of_size(100)),
        one(_text_of_size(101)),
        one(_text_of_size(94), title="title"),
        one(_text_of_size(95), title="title"),
        one(_text_of_size(120, "begin"), title="t", description="begin begin"),
        one(_text_of_size(130, "begin"), title="t", description="other"),
        one(_text_of_size(110, "dated"), date_publish="2020-01-01", source_domain="n.org"),
        one(_text_of_size(39)),
        one(_text_of_size(40)),
        {"title": "no text"},
        {"maintext": _text_of_size(102), "url": ["a", 1]},
    ]


def _openwebtext() -> list[Record]:
    english, chinese = articles(2), articles(2, language="zh")
    return [
        {"text": english[0]["text"], "url": "https://o.org/1"},
        {"text": english[1]["text"][:101]},
        {"text": english[1]["text"][:100]},
        {"text": english[1]["text"][:30]},
        {"text": english[1]["text"][:29]},
        {"text": chinese[0]["text"]},
        {"text": "la le li lo lu " * 10},
    ]


def _pile(first: int = 0) -> list[Record]:
    names = ("ArXiv", "FreeLaw", "PubMed Central", "Github", "Pile-CC", "Of My Own")
    records: list[Record] = [
        {
            "text": f"Text {first + at} of the set {name}.",
            "meta": {"pile_set_name": name},
            "id": f"{name} {first + at}",
        }
        for at in range(12)
        for name in names
    ]
    return [
        *records,
        {"text": "no meta"},
        {"text": "x", "meta": 1},
        {"text": "meta as JSON", "meta": '{"pile_set_name": "ArXiv"}'},
        {"text": "meta as Python", "meta": "{'pile_set_name': 'Pile-CC'}"},
        {"text": "meta as a text", "meta": "ArXiv"},
        {"text": "x", "meta": {"a": 1}},
    ]


def _fineweb() -> list[Record]:
    one = {
        "text": "A page of the web.",
        "id": "<urn:1>",
        "dump": "CC-1",
        "url": "https://w.org/1",
        "date": "2024",
        "file_path": "s3://x",
        "language": "en",
        "language_score": 0.9,
        "token_count": 7,
        "score": 2.5,
        "int_score": 3,
        "minhash_cluster_size": 4,
        "top_langs": "{}",
        "mine": {"a": [1, None]},
    }
    return [
        one,
        {**one, "id": "<urn:2>", "text": "eleven ch."},
        {**one, "id": "<urn:3>", "text": "eleven char."[:11]},
        {**one, "id": "<urn:4>", "text": "twelve char."},
        {**one, "id": "<urn:5>", "dump": "CC-2", "text": None},
        {**one, "id": "<urn:6>", "dump": None, "text": "No dump at all here.", "mine": None},
        {**one, "id": "<urn:7>", "text": ""},
    ]


def _wudao() -> list[Record]:
    def one(name: str, title: object, content: object, kind: object = "a") -> Record:
        return {"uniqueKey": name, "title": title, "content": content, "dataType": kind}

    return [
        one("100", "", _text_of_size(100)),
        one("101", "", _text_of_size(101)),
        one("title-100", "titl", _text_of_size(95)),
        one("title-101", "titl", _text_of_size(96)),
        one("repeated", "word", _text_of_size(110)),
        one("spaces", "  title  ", _text_of_size(111, "some")),
        one("no-title", None, _text_of_size(112, "more"), None),
        one("wrong-title", 4, _text_of_size(113), "b"),
        one("no-content", "x", None),
        one("wrong-content", "x", ["x"]),
        one("49", "", _text_of_size(49)),
        one("50", "", _text_of_size(50), 7),
    ]


def _fields() -> list[Record]:
    return [
        {"key": {"n": 1}, "body": {"text": "within a body"}, "a": "A", "b": {"c": [1, {"z": 2}]}},
        {
            "key": {"n": "two"},
            "body.text": "a dot in a name",
            "a": None,
            "b": True,
            "text": "plain",
        },
        {"key": 3, "body": {"text": "four"}, "text": "not four", "id": 5},
        {"key": None, "body": {"text": "fives"}, "a": 1.5, "b": {"c": "\u00e9"}},
        {"body": "a text itself", "text": {"text": "x"}},
        {"body": {"text": 8}},
        {"body": {"text": None}, "text": ""},
    ]


# ---- days that arrive ---------------------------------------------------------------------------


def page(at: int, *, query: str = "", **more: object) -> dict[str, Any]:
    """Return an article with a URL."""
    (article,) = articles(1, first=at)
    host = "a.org" if at % 5 == 0 else "b.org"
    return {**article, "id": f"page-{at}", "url": f"https://{host}/{at}{query}", **more}


def first_day(folder: Path) -> None:
    pages = [page(at) for at in range(40)]
    short = [{"id": "short", "url": "https://c.org/s", "title": "s", "text": "A short text."}]
    write_jsonl(folder / "in/a.jsonl", [*pages[:25], *short])
    write_jsonl(folder / "in/b.jsonl", [*pages[25:], {**pages[3], "id": "copy-of-3"}])


def second_day(folder: Path) -> None:
    """Write new pages, and pages of the first day: equal, with changed white space, or similar."""
    known = [
        page(5, id="same-as-5"),
        {**page(6, id="blanks-of-6"), "text": page(6)["text"].replace(" ", "  ")},
        {**page(7, id="near-7"), "text": page(7)["text"] + " The end."},
        {**page(8, id="half-of-8"), "text": page(8)["text"][:150]},
        {"id": "short-again", "url": "", "title": "s", "text": "A short text."},
    ]
    write_jsonl(folder / "in/c.jsonl", [*(page(at) for at in range(40, 60)), *known])


def extend_file(folder: Path) -> None:
    """Append a page to a file that the dataset has."""
    path = folder / "in/b.jsonl"
    path.write_bytes(path.read_bytes() + json_line(page(60, id="added")) + b"\n")


def hide_file(folder: Path) -> None:
    (folder / "in/c.jsonl").rename(folder / "c.jsonl")


def restore_file(folder: Path) -> None:
    (folder / "c.jsonl").rename(folder / "in/c.jsonl")


def replacing_bytes(before: bytes, after: bytes) -> Callable[[Path], None]:
    """Return a function that replaces bytes in a file, but keeps the file's size and time."""

    def change(folder: Path) -> None:
        path = folder / "in/a.jsonl"
        times = path.stat()
        path.write_bytes(path.read_bytes().replace(before, after))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    return change


change_unnoticed = replacing_bytes(b"A short text.", b"A small text.")
undo_change = replacing_bytes(b"A small text.", b"A short text.")


def names_to_remove(folder: Path) -> None:
    """Write one name for each way of naming documents, and a name that no document has."""
    (first,) = sorted((folder / "data").glob("g0001-*"))
    names = (
        "page-1",
        "https://b.org/2",
        "c.jsonl:0",
        f"{first.name}/text/00001:3",
        f"{first.name}/text/validation-00000:0",
        "nothing-of-this-name",
    )
    write_file(folder / "names.txt", "\n".join(names) + "\n")


def removed_texts_again(folder: Path) -> None:
    """Write a file with removed texts, one of which is slightly changed, and new texts."""
    near = {**page(1, id="near-1-again"), "text": page(1)["text"] + " And on."}
    pages = [page(1, id="1-again"), near, page(2, id="2-again"), page(61), page(62)]
    write_jsonl(folder / "in/d.jsonl", pages)


def erased_texts_again(folder: Path) -> None:
    """Write a file with the text of an erased page, and a new text."""
    write_jsonl(folder / "in/e.jsonl", [page(1, id="1-once-more"), page(63)])


def compacted_texts_again(folder: Path) -> None:
    """Write texts that compacted generations contain, similar texts, and a new one."""
    near = [{**page(at, id=f"near-{at}"), "text": page(at)["text"] + " So."} for at in (11, 45)]
    known = [page(12, id="same-as-12"), page(46, id="same-as-46")]
    write_jsonl(folder / "in/e.jsonl", [*known, *near, page(64)])


def copy_scripts(*names: str) -> Callable[[Path], None]:
    """Return a function that copies files of scripts/ into a folder."""

    def copy(folder: Path) -> None:
        for name in names:
            shutil.copyfile(Path(__file__).parent / "scripts" / name, folder / name)

    return copy


def stale_ledger(folder: Path) -> None:
    """Write the ledger that a run leaves if it dies after writing the manifest."""
    shutil.copyfile(folder / "ledger.json", folder / "data/ledger.json")


def classifier_inputs(folder: Path) -> None:
    """Write good and bad texts for a classifier, and a folder with files that are not data."""
    write_jsonl(folder / "good/a.jsonl", articles(40))
    write_jsonl(folder / "bad/a.jsonl", articles(40, language="zh"))
    write_jsonl(folder / "mixed/a.jsonl", [*articles(30), b"{broken", *articles(5, first=30)])
    write_file(folder / "mixed/b.txt", "Some lines.\nOf text.\n")
    write_file(folder / "mixed/old.txt", "中文的文字，不是统一码。".encode("gb18030"))
    write_file(folder / "mixed/page.jsonl", "<!DOCTYPE html><html><head><title>Sign in</title>")
    write_file(folder / "mixed/c.pdf", b"%PDF-1.4\n")


def damaged_array(folder: Path) -> None:
    """Write three records for WuDao, of which the second is not JSON."""
    records = (f'{{"id": {number}, "content": "好"}}' for number in ("1", "02", "3"))
    write_file(folder / "harmed-array/part-1.json", f"[{', '.join(records)}]")
    write_jsonl(folder / "fields/a.jsonl", ({"body": page} for page in articles(40)))


def flip_byte(folder: Path) -> None:
    """Change one byte of a shard."""
    path = min((folder / "two").glob("g0001-*/wudao/*.bin"))
    content = bytearray(path.read_bytes())
    content[7] ^= 1
    path.write_bytes(content)
