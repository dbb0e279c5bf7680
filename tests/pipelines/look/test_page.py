from pathlib import Path

from pipelines.look.look import look
from pipelines.look.page import COLUMNS, page
from pipelines.planning.table import cut, table, width
from tests.pipelines.look.shapes import write


def test_lines_are_not_wider_than_a_terminal(tmp_path: Path) -> None:
    many = {f"a_rather_long_name_{n}": "多种文字 and words " * 50 for n in range(40)}
    path = write(tmp_path / "a.jsonl", [many])
    lines = [*page(look(str(path)))]
    assert "and 16 more fields" in lines
    free = ("  ", str(tmp_path))
    assert max(width(line) for line in lines if not line.startswith(free)) <= COLUMNS


def test_nothing_to_run(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n')
    lines = [*page(look(str(tmp_path)))]
    assert lines[-1].startswith("next      nothing to run: no corpus here reads these records")
    assert "text      no field looks like texts" in lines


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


def test_widths_of_chinese_and_accents() -> None:
    assert [width(text) for text in ("ab", "中文", "e\u0301", "，")] == [2, 4, 1, 2]
    assert cut("中文中文", 8) == "中文中文"
    assert cut("中文中文", 7) == "中文中…"
    assert cut("中文中文", 6) == "中文…"
    rows = [*table([("中文", "1"), ("a", "23")], left=(0,))]
    assert rows == ["中文   1", "a     23"]
