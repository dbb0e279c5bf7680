"""What of a source is looked at before it is mapped, and what is said if nothing can be read."""

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.recipe import load_recipe
from pipelines.corpus.sources import match_corpora
from pipelines.map.first_records import FirstFiles, check_sources
from pipelines.map.mapper import Job
from shards.errors import UserError

GOOD, BAD = '{"text": "good"}\n', '{"body": "bad"}\n'


def check(*inputs: object, module: str = "pipelines.text", known: str = "", **changes: Any) -> None:
    options = load_recipe(module).options(input=tuple(map(str, inputs)), **changes)
    files, corpora = match_corpora(module, options)
    job = Job(options=options, corpora=corpora, versions={}, run="0" * 32)
    check_sources(FirstFiles(job=job, files=files, known=frozenset(known.split())))


def write(folder: Path, **contents: str) -> Path:
    folder.mkdir()
    for name, content in contents.items():
        (folder / f"{name}.jsonl").write_text(content)
    return folder


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        ({"a": BAD * 1100}, "the first 1,000 records, of .*/a.jsonl, are rejected"),
        (
            {"a": BAD * 3, "b": '{"text": 3}\n' * 2},
            r"all 5 .*1 more file, .*3 missing-field, 2 wrong-",
        ),
        ({"a": BAD * 1000 + GOOD}, ""),
        ({"a": BAD * 5000 + GOOD}, "the first 1,000 records"),
        ({"a": BAD * 5000, "b": GOOD}, ""),
        ({name: BAD * 2000 for name in "abcdefg"} | {"h": GOOD}, "1,000 records.* 3 more files"),
        ({"a": '{"text": ""}\n'}, ""),
    ],
)
def test_a_source_is_read_until_something_of_it_can_be(
    tmp_path: Path, contents: dict[str, str], told: str
) -> None:
    folder = write(tmp_path / "in", **contents)
    if not told:
        check(folder)
        return
    with pytest.raises(UserError, match=told):
        check(folder)
    good = write(tmp_path / "good", a=GOOD)
    with pytest.raises(UserError, match=f"source 'y'.*{told}"):
        check(f"x={good}", f"y={folder}")


@pytest.mark.parametrize("allowed", [{"known": "x y"}, {"max_reject_rate": 0.5}], ids=str)
def test_a_few_bad_records_of_a_known_source_or_of_an_allowed_share_stop_nothing(
    tmp_path: Path, allowed: dict[str, Any]
) -> None:
    few, many = write(tmp_path / "few", a=BAD * 9), write(tmp_path / "many", a=BAD * 1000)
    check(f"x={few}", **allowed)
    with pytest.raises(UserError, match="the first 1,000 records"):
        check(f"x={many}", **allowed)


INNER = {"id": None, "meta": {"text": "words"}}
TWO = {"summary": "a", "article": "the longest of all"}
MEANT = "Did you mean --text-field meta.text?"


@pytest.mark.parametrize(
    ("record", "field", "told"),
    [
        (TWO, "sumary", ("Did you mean --text-field summary?",)),
        (INNER, "body", ("--text-field body: these records have meta.text, id. ", MEANT)),
        (INNER, "meta", ("field meta: in these records it is of type object, not text; ", MEANT)),
        (INNER, "id", ("field id: in these records it is of type null, not text; ", MEANT)),
    ],
)
def test_what_cannot_be_read_is_told_with_what_is_there(
    tmp_path: Path, record: dict[str, Any], field: str, told: tuple[str, ...]
) -> None:
    folder = write(tmp_path / "in", a=json.dumps(record) + "\n")
    with pytest.raises(UserError) as raised:
        check(folder, text_field=field)
    for text in told:
        assert text in str(raised.value)
