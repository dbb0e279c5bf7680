from pathlib import Path

import pytest

from pipelines.look.look import look
from pipelines.look.page import COLUMNS, about, example, page
from pipelines.planning.table import cut, table, width
from tests.pipelines.look.shapes import SHAPES, of_corpus, write


def test_a_page(tmp_path: Path) -> None:
    of_corpus("wudao", tmp_path, number=4)
    lines = [*page(look(str(tmp_path)))]
    assert lines[0] == f"{tmp_path}: 1 file, 2.76 kB"
    assert lines[2] == ".json  1  2.76 kB  JSON array of objects: about 4 records"
    assert "content *  text    100 %    200  人工智能" in "\n".join(lines)
    assert "language  zh 100 %" in lines
    assert any(line.startswith("corpus    wudao: reads 4 of 4; text from title") for line in lines)
    assert lines[-2].startswith("  python -m pipelines.wudao --input ")
    assert lines[-2].endswith(" --plan")
    assert lines[-2].removesuffix(" --plan") == lines[-1]


def test_lines_are_not_wider_than_a_terminal(tmp_path: Path) -> None:
    many = {f"a_rather_long_name_{n}": "多种文字 and words " * 50 for n in range(40)}
    path = write(tmp_path / "a.jsonl", [many])
    lines = [*page(look(str(path)))]
    assert "and 16 more fields" in lines
    free = ("  ", str(tmp_path))
    assert max(width(line) for line in lines if not line.startswith(free)) <= COLUMNS


def test_what_cannot_be_read_is_told_with_its_place(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [SHAPES["text"]] * 5)
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write("{broken\n" * 5)
    (tmp_path / "b.jsonl").write_text("<html>")
    (tmp_path / "c.jsonl").touch()
    text = "\n".join(page(look(str(tmp_path))))
    assert f"  {tmp_path}/a.jsonl, line 6: bad-json\n" in text
    assert f"  {tmp_path}/a.jsonl: 5 such places at its beginning\n" in text
    assert "b.jsonl holds no JSON lines" in text
    assert f"  {tmp_path}/c.jsonl is empty (0 bytes)" in text
    assert "a run stops at files" in text
    assert "empty files and what cannot be opened stop a run, unless --skip-unreadable" in text
    assert "of these records, unread ones are more than --max-reject-rate" in text


def test_no_stop_is_foretold_from_beginnings(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", [SHAPES["pile"]] * 3 + [{"text": 1}, {"text": 2}])
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write("{broken\n" * 5)
    lines = [*page(look(str(tmp_path)))]
    assert sum("more than --max-reject-rate allows; --plan" in line for line in lines) == 2
    assert not any("would stop" in line for line in lines)
    assert max(width(line) for line in lines if not line.startswith(("  ", str(tmp_path)))) <= 96


def test_nothing_to_run(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n')
    lines = [*page(look(str(tmp_path)))]
    assert lines[-1].startswith("next      nothing to run: no corpus here reads these records")
    assert "text      no field looks like texts" in lines


def test_a_text_that_few_records_have_is_offered_with_its_share(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [SHAPES["text"], {"n": 1}, {"n": 2}, {"n": 3}])
    lines = [*page(look(str(path)))]
    assert "text      body (*): most letters, in 25 % of these records" in lines
    assert "          it quarantines 3 missing-field:" in lines
    assert f"pipelines.text --input {path} --text-field body" in lines[-1]


def test_a_dataset_is_inspected(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    assert [*page(look(str(tmp_path)))] == [
        f"{tmp_path}: a dataset, whose texts are tokens already",
        f"next      python -m shards inspect {tmp_path}",
    ]


def test_hostile_texts_are_shown_not_obeyed(tmp_path: Path) -> None:
    value = "\x1b[31m red words https://user:hunter2@a.org/?token=hunter2 " + "x" * 900
    path = write(tmp_path / "a.jsonl", [{"te\x1bxt": value}])
    text = "\n".join(page(look(str(path))))
    assert "te\u241bxt *" in text
    assert "\u241b[31m red words https://" in text
    assert "hunter2" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (7, "7"), (99, "99"), (1104, "1,100"), (123_456, "120,000")]
)
def test_about(number: float, text: str) -> None:
    assert about(number) == text


def test_widths_of_chinese_and_accents() -> None:
    assert [width(text) for text in ("ab", "中文", "e\u0301", "，")] == [2, 4, 1, 2]
    assert cut("中文中文", 8) == "中文中文"
    assert cut("中文中文", 7) == "中文中…"
    assert cut("中文中文", 6) == "中文…"
    rows = [*table([("中文", "1"), ("a", "23")], left=(0,))]
    assert rows == ["中文   1", "a     23"]


def test_an_example_is_one_line() -> None:
    assert example("a\n\nb\tc", 20) == "a b c"
    assert example("a" * 50, 20) == "a" * 19 + "…"
