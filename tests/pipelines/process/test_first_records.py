"""Bad first records that do not stop a run; the rows of refusals have those that do."""

from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.sources import list_corpus_files
from pipelines.corpus.spec import load_spec
from pipelines.process.first_records import FirstFiles, check_sources
from pipelines.process.processor import Job
from shards.errors import UserError

BAD = '{"body": "bad"}\n'


def check(
    path: Path, records: int, *, record: str = BAD, known: str = "", **changes: Any
) -> list[str]:
    """Check a number of bad records of a source x, and return the warnings."""
    path.write_text(record * records)
    module = "pipelines.text"
    options = load_spec(module).options(input=(f"x={path}",), **changes)
    listing, corpora = list_corpus_files(module, options)
    job = Job(options=options, corpora=corpora, versions={}, run="0" * 32)
    return check_sources(FirstFiles(job=job, files=listing.files, known=frozenset(known.split())))


@pytest.mark.parametrize("allowed", [{"known": "x y"}, {"max_reject_rate": 0.5}], ids=str)
def test_a_few_bad_records_of_a_known_source_or_of_an_allowed_share_stop_nothing(
    tmp_path: Path, allowed: dict[str, Any]
) -> None:
    check(tmp_path / "few.jsonl", 9, **allowed)
    with pytest.raises(UserError, match="the first 1,000 records"):
        check(tmp_path / "many.jsonl", 1000, **allowed)


def test_one_text_of_a_table_by_columns_is_a_warning(tmp_path: Path) -> None:
    record = '{"text": {"0": "one text", "1": "another"}}'
    (warning,) = check(tmp_path / "a.json", 1, record=record, text_field="text.1")
    assert (
        "is one object of many records. This looks like a table that pandas wrote by columns"
        in warning
    )


def test_a_field_may_be_missing_in_a_few_records_of_a_known_source(tmp_path: Path) -> None:
    path, record = tmp_path / "a.jsonl", '{"text": "a", "URL": "https://a.org"}\n'
    named = {"record": record, "provenance": ("url",)}
    (warning,) = check(path, 9, known="x", **named)
    assert "--provenance url: there is no field url in the first 9 records" in warning
    with pytest.raises(UserError, match="--provenance url"):
        check(path, 9, known="y", **named)
    # A list in this format would block nothing.
    with pytest.raises(UserError, match="--url-blocklist"):
        check(path, 9, known="x", url_blocklist=("list",), **named)
    named["record"] = '{"text": "a", "url": null}\n'
    (warning,) = check(path, 9, known="x", url_blocklist=("list",), **named)
    assert "--url-blocklist blocks nothing" in warning
