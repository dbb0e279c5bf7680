"""What is seen of a path beyond what golden rows show: shapes, estimates, and what is odd."""

import gzip
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.look.heads import HEAD_RECORDS
from pipelines.look.look import look
from pipelines.look.page import COLUMNS, command, page
from pipelines.planning.table import width
from pipelines.readers.fields import Field, fields_of, text_field
from pipelines.readers.record import Record
from tests.golden.corpora import put_array, put_lines

CHINESE = "人工智能正在改变我们的生活方式，也带来了新的问题。" * 8
ENGLISH = "The quick brown fox jumps over the lazy dog, and the dog does not mind. " * 4
PAGE, BODY = {"text": ENGLISH}, {"body": ENGLISH, "lang": "en", "n": 3}
ENTRY = {"title": "题目", "content": CHINESE}


def write(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """Write records in the format that the name's ending says."""
    (put_array if path.suffix == ".json" else put_lines)(path, records)
    return path


def words(path: Path) -> list[str]:
    seen = look(str(path))
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
def test_the_path_and_the_format_tell_corpora_apart(
    name: str, record: Mapping[str, Any], corpus: str, tmp_path: Path
) -> None:
    path = write(tmp_path / name, [record] * 3)
    assert look(str(path)).guesses[0].corpus == corpus


def test_a_glob_where_a_folder_has_other_files(tmp_path: Path) -> None:
    write(tmp_path / "deep/data.json", [ENTRY])
    assert words(tmp_path)[4] == f"{tmp_path}/**/*.json", "part-*.json is what WuDao takes"
    (tmp_path / "a.txt").write_bytes(b"\xff\n")
    write(tmp_path / "b.jsonl", [BODY] * 50)
    assert words(tmp_path)[4] == f"{tmp_path}/*.jsonl", "the largest format"


@pytest.mark.parametrize("packed", [False, True])
def test_the_head_of_a_file_estimates_the_rest(packed: bool, tmp_path: Path) -> None:
    records = [{**PAGE, "n": n * n} for n in range(40_000)]
    path = write(tmp_path / "a.jsonl", records)
    if packed:
        (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
        path.unlink()
    seen = look(str(tmp_path))
    assert len(seen.records) == HEAD_RECORDS
    assert seen.kinds[0].records == pytest.approx(40_000, rel=0.3 if packed else 0.02)


def fields(*values: Mapping[str, Any]) -> list[Field]:
    return fields_of([Record(0, 1, value, b"") for value in values])


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
    many = {"te\x1bxt": "\x1b[31m red https://user:hunter2@a.org/?token=hunter2 " + "x y " * 900}
    many |= {f"a_rather_long_name_{n}": "多种文字 and words " * 50 for n in range(40)}
    path = write(tmp_path / "a.jsonl", [many])
    lines = [*page(look(str(path)))]
    assert "and 17 more fields" in lines
    free = ("  ", str(tmp_path))
    assert max(width(line) for line in lines if not line.startswith(free)) <= COLUMNS
    text = "\n".join(lines)
    assert "te\u241bxt *" in text
    assert "\u241b[31m red https://" in text
    assert "hunter2" not in text
    assert "\x1b" not in text
