"""Findings that golden rows do not cover: layouts, estimates and odd files."""

import gzip
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.look.command import Look
from pipelines.look.file_head import HEAD_RECORDS
from pipelines.look.inspection import inspect_input
from pipelines.look.page import COLUMNS, command, page
from pipelines.read.fields import Field, fields_of, text_field
from pipelines.read.record import Record
from pipelines.report.columns import width
from tests.golden.corpora import write_json_array, write_jsonl

CHINESE = "人工智能正在改变我们的生活方式，也带来了新的问题。" * 8
ENGLISH = "The quick brown fox jumps over the lazy dog, and the dog does not mind. " * 4
PAGE, BODY = {"text": ENGLISH}, {"body": ENGLISH, "lang": "en", "n": 3}
ENTRY = {"title": "题目", "content": CHINESE}


def write(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """Write records in the format of the file's extension."""
    (write_json_array if path.suffix == ".json" else write_jsonl)(path, records)
    return path


def words(path: Path) -> list[str]:
    seen = inspect_input(str(path))
    return shlex.split(command(seen, seen.guesses[0]))


@pytest.mark.parametrize(
    ("name", "record", "corpus"),
    [
        ("OpenWebText/a.jsonl", PAGE, "openwebtext"),
        ("open-web-text/a.jsonl", PAGE, "openwebtext"),
        ("other/a.jsonl", PAGE, "text"),
        ("wudao/a.jsonl", BODY, "text"),
        ("books/a.json", ENTRY, "wudao"),
        ("books/a.jsonl", ENTRY, "baike"),
    ],
)
def test_path_and_format_distinguish_corpora(
    name: str, record: Mapping[str, Any], corpus: str, tmp_path: Path
) -> None:
    path = write(tmp_path / name, [record] * 3)
    assert inspect_input(str(path)).guesses[0].corpus == corpus


def test_a_glob_where_a_folder_has_other_files(tmp_path: Path) -> None:
    write(tmp_path / "deep/data.json", [ENTRY])
    assert words(tmp_path)[4] == f"{tmp_path}/**/*.json", "part-*.json is what WuDao takes"
    (tmp_path / "a.txt").write_bytes(b"\xff\n")
    write(tmp_path / "b.jsonl", [BODY] * 50)
    assert words(tmp_path)[4] == f"{tmp_path}/*.jsonl", "the largest format"
    assert "left out  1 file (.json) with other records, which need another command" in lines_of(
        tmp_path
    )


def lines_of(path: Path) -> list[str]:
    return [*page(inspect_input(str(path)))]


def test_all_formats_whose_records_the_corpus_reads_count(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [PAGE] * 9)
    write(tmp_path / "b.json", [PAGE] * 4)
    (tmp_path / "c.TXT").write_text(f"{ENGLISH}\n{ENGLISH}\n")
    assert len(inspect_input(str(tmp_path)).records) == 15
    assert words(tmp_path)[3:5] == ["--input", str(tmp_path)]
    (tmp_path / "d.txt").write_bytes(b"%PDF-1.4")
    (tmp_path / "d.txt").rename(tmp_path / "d.json")
    assert len(inspect_input(str(tmp_path)).records) == 15


def test_files_are_one_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(write(tmp_path / name, [PAGE] * 3)) for name in ("a.jsonl", "b.jsonl")]
    other = write(tmp_path / "in/c.jsonl", [PAGE]).parent
    Look.parse([files[0], str(other), files[1]], "pipelines.look").run()
    lines = capsys.readouterr().out.splitlines()
    heads = [line for line in lines if line.startswith(str(tmp_path))]
    assert [line.split(": ")[1][:7] for line in heads] == ["2 files", "1 file,"]
    assert heads[0].startswith(f"{files[0]} and 1 more: ")
    (line, *_) = [line for line in lines if "--input" in line]
    assert shlex.split(line)[3:6] == ["--input", *files]


def test_no_command_is_suggested_for_a_table_by_columns(tmp_path: Path) -> None:
    table = {"text": {"0": "one long text", "1": "another long text"}}
    seen = inspect_input(str(write(tmp_path / "a.jsonl", [table])))
    assert not seen.guesses
    assert "that pandas wrote by columns" in "\n".join(page(seen))
    assert inspect_input(
        str(write(tmp_path / "b.jsonl", [{"n": {"0": "a"}, "text": "a b c d"}] * 2))
    ).guesses


def test_files_without_an_extension_are_read_by_a_glob(tmp_path: Path) -> None:
    for name in ("AA/wiki_00", "AA/wiki_01", "AB/wiki_00"):
        write(tmp_path / name, [PAGE] * 3)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part").touch()
    assert words(tmp_path)[3:5] == ["--input", f"{tmp_path}/**/wiki_*"]
    assert (
        f"  1 hidden or unfinished file in {tmp_path} not read: .part. To read one, give its "
        "path as an input." in lines_of(tmp_path)
    )
    write(tmp_path / "a.jsonl", [PAGE])
    assert words(tmp_path)[3:5] == ["--input", str(tmp_path)]
    for name in ("AA/wiki_00", "AA/wiki_01", "AB/wiki_00"):
        (tmp_path / name).write_text(f'<doc id="1" url="x" title="T">\n{ENGLISH}\n</doc>\n')
    (line,) = [line for line in lines_of(tmp_path) if line.startswith("(no extension)")]
    assert line.endswith("text of WikiExtractor: run it with --json, so that its files can be read")


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("a.jsonl", "iconv -f GB18030 -t UTF-8 {}/a.jsonl > a.utf8.jsonl"),
        ("a.txt", "iconv -f GB18030 -t UTF-8 {}/a.txt > a.utf8.txt"),
        ("a.jsonl.gz", "gzip -dc {}/a.jsonl.gz | iconv -f GB18030 -t UTF-8 > a.utf8.jsonl"),
        ("wiki_00", "iconv -f GB18030 -t UTF-8 {}/wiki_00 > wiki_00.utf8"),
    ],
)
def test_an_encoding_is_named_with_its_conversion(name: str, command: str, tmp_path: Path) -> None:
    text = json.dumps({"text": CHINESE}, ensure_ascii=False) if "json" in name else CHINESE
    data = f"{text}\n".encode("gbk") * 5
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    told = f"its text is probably GB18030 (GBK); to convert it: {command.format(tmp_path)}"
    assert any(line.endswith(told) for line in lines_of(tmp_path))


@pytest.mark.parametrize("packed", [False, True])
def test_the_head_of_a_file_estimates_the_rest(packed: bool, tmp_path: Path) -> None:
    records = [{**PAGE, "n": n * n} for n in range(40_000)]
    path = write(tmp_path / "a.jsonl", records)
    if packed:
        (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
        path.unlink()
    seen = inspect_input(str(tmp_path))
    assert len(seen.records) == HEAD_RECORDS
    assert seen.kinds[0].records == pytest.approx(40_000, rel=0.3 if packed else 0.02)


def fields(*values: Mapping[str, Any]) -> list[Field]:
    return fields_of([Record(0, 1, value, b"") for value in values])


def test_fields_of_objects_are_named_down_to_the_fourth_level() -> None:
    (deep,) = fields({"a": {"b": {"c": {"d": {"e": "text"}}}}})
    assert deep.name == "a.b.c.d"


def test_the_text_is_the_field_with_most_letters_in_words() -> None:
    record = {
        "url": "https://example.org/" + "a" * 500,
        "hash": "0123456789abcdef" * 40,
        "title": "Two words",
        "body": {"text": "Many more words stand here"},
    }
    assert text_field(fields(record)) == "body.text"
    assert text_field(fields({**record, "zh": "没有空格的中文也是文字" * 3})) == "zh"
    rare = {"note": "a note that is long but rare " * 9}
    assert text_field(fields(*[{"a": "x"}] * 3, rare)) == "note"
    frequent = fields(*[{"a": "a short text"}] * 3, rare)
    assert text_field(frequent) == "a", "fewer letters, but of most records"


def test_lines_are_not_wider_than_a_terminal_and_hostile_texts_are_shown(tmp_path: Path) -> None:
    many = {"te\x1bxt": "\x1b[31m red " + "x y " * 900}
    many |= {f"a_rather_long_name_{n}": "多种文字 and words " * 50 for n in range(40)}
    path = write(tmp_path / "a.jsonl", [many])
    lines = [*page(inspect_input(str(path)))]
    assert "and 17 more fields" in lines
    free = ("  ", str(tmp_path))
    assert max(width(line) for line in lines if not line.startswith(free)) <= COLUMNS
    text = "\n".join(lines)
    assert "te\u241bxt *" in text
    assert "\u241b[31m red" in text
    assert "\x1b" not in text
