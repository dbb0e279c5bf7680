import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.options import Options
from pipelines.corpus.recipe import load_recipe
from pipelines.corpus.sources import Corpus, match_corpora
from pipelines.map.first_records import unread


def message(path: Path, *, module: str = "pipelines.text", **changes: Any) -> str:
    """What is said of a source of which nothing can be read."""
    kind = load_recipe(module).options
    options: Options = kind(input=(str(path),), **changes)
    files, _ = match_corpora(module, options)
    found = unread(Corpus(module, options), files, source="s")
    assert found is not None
    return str(found.error(whole=True))


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return path


def test_a_wrong_field_is_told_with_those_that_are_there(tmp_path: Path) -> None:
    record = {"id": 7, "title": "A title", "content": "A text that is longer.", "tags": ["x"]}
    path = lines(tmp_path / "a.jsonl", record, {**record, "extra": None})
    text = message(path, text_field="body")
    assert text.startswith(
        "--text-field body: these records have content, title, id, tags, extra. So nothing of the "
        f"source 's' can be read: all 2 records, of {path}, are rejected (2 missing-field). The "
        'first one, at byte 0: {"id": 7, "title": "A title", "content": "A text that is longer.", '
    )
    assert "Did you mean --text-field content?" in text
    assert text.endswith("leave this source out of --input, or give --max-reject-rate 1")


def test_a_field_that_was_mistyped_comes_before_longer_texts(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"summary": "a", "article": "the longest of all"})
    assert "Did you mean --text-field summary?" in message(path, text_field="sumary")


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("body", "--text-field body: these records have meta.text, id. "),
        ("meta.body", "--text-field meta.body: these records have meta.text, id. "),
        ("page.text", "--text-field page.text: these records have meta.text, id. "),
        ("meta", "--text-field meta: in these records it is of type object, not text; "),
        ("id", "--text-field id: in these records it is of type null, not text; "),
    ],
)
def test_fields_in_fields_and_fields_that_are_no_text(
    tmp_path: Path, field: str, told: str
) -> None:
    path = lines(tmp_path / "a.jsonl", {"id": None, "meta": {"text": "words"}})
    text = message(path, text_field=field)
    assert text.startswith(told)
    assert "Did you mean --text-field meta.text?" in text


@pytest.mark.parametrize(
    ("module", "record", "told"),
    [
        ("wudao", {"title": "t", "text": "x"}, "the corpus wudao needs the field content: these "),
        ("pile", {"text": "x"}, "the corpus pile needs the field meta: these records have text."),
        ("pile", {"text": "x", "meta": {"set": 1}}, "pile needs the field pile_set_name: "),
    ],
)
def test_a_corpus_without_such_a_flag_names_the_field_it_needs(
    tmp_path: Path, module: str, record: Any, told: str
) -> None:
    if module == "wudao":
        path = tmp_path / "part-1.json"
        path.write_text(json.dumps([record]))
    else:
        path = lines(tmp_path / "00.jsonl", record)
    text = message(path, module=f"pipelines.{module}")
    assert told in text
    assert "python -m pipelines.text --text-field text reads records with any fields." in text


def test_another_encoding_is_named_and_the_example_read_in_it(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("今天天气很好，我们去公园散步。\n".encode("gbk") * 3)
    text = message(path)
    assert text.startswith("these records are not in UTF-8, and read as GB18030 (GBK) does. So")
    assert "are rejected (3 bad-utf8). The first one, at byte 0: 今天天气很好" in text
    assert "iconv -f GB18030 -t UTF-8 FILE > NEW" in text


def test_records_without_fields_are_told_by_their_reason(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a\\u0000b"}\n' * 2)
    text = message(path)
    assert text.startswith("these records are nul: the texts hold NUL characters")


def test_who_lets_all_be_rejected_is_not_told_how_to(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"a": 1})
    assert "To go on" not in message(path, max_reject_rate=1.0)
