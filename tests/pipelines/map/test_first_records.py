import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.sources import match_corpora
from pipelines.inputs.files import InputFile
from pipelines.map import first_records
from pipelines.map.first_records import FirstFiles, check_sources, look
from pipelines.map.mapper import Job
from pipelines.text import TextOptions
from shards.errors import UserError

GOOD, BAD = '{"text": "good"}\n', '{"body": "bad"}\n'


def first_of(
    *inputs: object, output: Path = Path("unused"), known: str = "", **changes: Any
) -> FirstFiles:
    options = TextOptions(input=tuple(map(str, inputs)), output=output, **changes)
    files, corpora = match_corpora("pipelines.text", options)
    job = Job(options=options, corpora=corpora, versions={}, run="0" * 32)
    return FirstFiles(job=job, files=files, known=frozenset(known.split()))


def write(folder: Path, **contents: str) -> Path:
    folder.mkdir()
    for name, content in contents.items():
        (folder / f"{name}.jsonl").write_text(content)
    return folder


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        ({"a": BAD * 1100}, "the first 1,000 records, of .*/a.jsonl, are rejected"),
        ({"a": BAD * 3}, "all 3 records, of .*/a.jsonl, are"),
        (
            {"a": BAD * 3, "b": '{"text": 3}\n' * 2},
            r"all 5 .*1 more file, .*3 missing-field, 2 wrong-",
        ),
        ({"a": BAD * 999 + GOOD}, ""),
        ({"a": BAD * 1000 + GOOD}, ""),
        ({"a": BAD * 1200 + GOOD * 9000}, ""),
        ({"a": BAD * 5000 + GOOD}, "the first 1,000 records"),
        ({"a": BAD * 5000, "b": GOOD}, ""),
        ({name: BAD * 2000 for name in "abcdefg"} | {"h": GOOD}, "1,000 records.* 3 more files"),
        ({name: BAD for name in "abcdefg"} | {"h": GOOD}, ""),
        ({"a": '{"text": ""}\n'}, ""),
        ({"a": "\n"}, ""),
    ],
)
def test_a_source_is_read_until_something_of_it_can_be(
    tmp_path: Path, contents: dict[str, str], told: str
) -> None:
    first = first_of(write(tmp_path / "in", **contents))
    if not told:
        check_sources(first)
        return
    with pytest.raises(UserError, match=told):
        check_sources(first)


def test_a_good_record_costs_no_second_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    folder = write(tmp_path / "in", a=BAD + GOOD, b=GOOD, c=GOOD, d=GOOD)
    first = first_of(folder)
    monkeypatch.setattr(
        first_records, "check_head", lambda file, _: opened.append(Path(file.path).name)
    )
    check_sources(first)
    assert opened == ["a.jsonl", "b.jsonl"]


def test_each_source_is_looked_at(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "good", a=GOOD), write(tmp_path / "bad", a=BAD * 2)
    with pytest.raises(UserError, match=r"source 'y'.* all 2 records"):
        check_sources(first_of(f"x={good}", f"y={bad}"))


def test_of_a_source_that_a_dataset_has_a_few_bad_records_stop_nothing(tmp_path: Path) -> None:
    few, many = write(tmp_path / "few", a=BAD * 9), write(tmp_path / "many", a=BAD * 1000)
    check_sources(first_of(f"x={few}", known="x y"))
    with pytest.raises(UserError, match="the first 1,000 records"):
        check_sources(first_of(f"x={many}", known="x y"))


def test_a_share_that_is_allowed_by_name_is_for_the_map(tmp_path: Path) -> None:
    few, many = write(tmp_path / "few", a=BAD * 9), write(tmp_path / "many", a=BAD * 1000)
    check_sources(first_of(f"x={few}", max_reject_rate=0.5))
    with pytest.raises(UserError, match="the first 1,000 records"):
        check_sources(first_of(f"x={many}", max_reject_rate=0.5))


def test_archives_arrays_and_tables(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(BAD.encode() * 4))
    (folder / "b.json").write_text(json.dumps([{"body": "x"}] * 4))
    (folder / "c.txt").write_bytes(b"\xff\xfa\n" * 4)
    pq.write_table(pa.table({"text": pa.nulls(4, pa.string())}), folder / "d.parquet")
    with pytest.raises(UserError, match=r"all 16 records, .* 3 more files, .*12 missing-field, 4 "):
        check_sources(first_of(folder))


def test_many_bytes_are_left_to_the_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_records, "MOST_BYTES", 50)
    check_sources(first_of(write(tmp_path / "in", a=BAD * 9)))


def test_of_many_files_those_that_are_looked_at_lie_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_records, "MOST_FILES", 4)
    folder = write(tmp_path / "in", **{f"f{number}": GOOD for number in range(8)})
    looked: list[InputFile] = []
    look(first_of(folder), call=lambda _, first: looked.extend(first.files))
    assert [Path(file.path).stem for file in looked] == ["f0", "f2", "f4", "f6"]
    bad = write(tmp_path / "bad", **{f"f{number}": BAD for number in range(8)})
    look(first_of(bad, output=tmp_path / "out"), call=lambda check, first: check(first))


def test_a_process_that_died_of_a_record_looks_no_more(tmp_path: Path) -> None:
    first = first_of(write(tmp_path / "in", a=BAD), output=tmp_path / "out")
    for dies in (True, False):
        child = os.fork()
        if not child:
            code = 1
            try:
                if dies:
                    first_records.check_sources = lambda _: os._exit(9)
                look(first, call=lambda check, first: check(first))
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (9 if dies else 0)
    assert not [*(tmp_path / "out/.work/attempts").iterdir()]
