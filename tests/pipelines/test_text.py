from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipelines.corpus.document import Rejected
from pipelines.filters.listing import read_whole
from pipelines.readers.record import Record
from pipelines.text import RECIPE, TextOptions, documents
from shards.errors import UserError
from tests.pipelines.real import real_records

RECORD = {
    "text": "a text",
    "id": 7,
    "url": "https://example.org",
    "meta": {"body": "inside", "language": "en"},
}


@pytest.mark.parametrize(
    ("changes", "text", "origin"),
    [
        ({}, "a text", {"id": "7"}),
        ({"id_field": "none"}, "a text", {"id": ""}),
        ({"text_field": "meta.body"}, "inside", {"id": "7"}),
        ({"text_field": "url", "id_field": "text"}, RECORD["url"], {"id": "a text"}),
        ({"provenance": ("url", "x")}, "a text", {"id": "7", "url": RECORD["url"], "x": ""}),
        ({"provenance": ("meta.language",)}, "a text", {"id": "7", "meta_language": "en"}),
        ({"provenance": ("said=meta.language",)}, "a text", {"id": "7", "said": "en"}),
        ({"provenance": ("meta",)}, "a text",
         {"id": "7", "meta": '{"body":"inside","language":"en"}'}),
    ],
)  # fmt: skip
def test_fields_are_taken_by_name(
    changes: dict[str, Any], text: str, origin: dict[str, str]
) -> None:
    options = TextOptions(**changes)
    (made,) = documents(RECORD, options)
    assert (made.text, made.provenance, made.reason) == (text, origin, None)
    assert RECIPE.provenance(options) == dict.fromkeys(origin, pa.large_string())


@pytest.mark.parametrize(
    ("record", "reason"),
    [({}, "missing-field"), ({"text": None}, "missing-field"), ({"text": [1]}, "wrong-type")],
)
def test_what_has_no_text_is_rejected(record: dict[str, Any], reason: str) -> None:
    with pytest.raises(Rejected, match=f"^{reason}$"):
        documents(record, TextOptions())


@pytest.mark.parametrize(("least", "reason"), [(0, None), (6, None), (7, "too-short")])
def test_least_characters(least: int, reason: str | None) -> None:
    assert documents(RECORD, TextOptions(min_chars=least))[0].reason == reason


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"provenance": ("language",)}, r"cannot be called 'language'.*from_language=FIELD"),
        ({"provenance": ("id",)}, r"cannot be called 'id'"),
        ({"provenance": ("order=a",)}, r"cannot be called 'order'"),
        ({"provenance": ("prompt_tokens",)}, r"cannot be called 'prompt_tokens'"),
        ({"provenance": ("a", "a=b")}, r"cannot be called 'a'"),
        ({"provenance": ("a b",)}, r"cannot be called 'a b'"),
        ({"format": "lines", "text_field": "body"}, r"no meaning with --format lines"),
    ],
)
def test_names_that_will_not_do_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        TextOptions(**changes)


@pytest.mark.parametrize(
    ("name", "content", "changes", "texts"),
    [
        ("a.jsonl", '{"text": "x"}\n{"text": "y"}\n', {}, ["x", "y"]),
        ("a.json", '[{"text": "x"}, {"text": "y"}]', {}, ["x", "y"]),
        ("a.json", '[{"m": {"t": "x"}}, {"m": {"t": "y"}}]', {"text_field": "m.t"}, ["x", "y"]),
        ("a.txt", "x\n\ny<n>z\n", {"newline": "<n>"}, ["x", "y\nz"]),
        ("a.log", "x\ny\n", {"format": "lines"}, ["x", "y"]),
    ],
)
def test_formats(
    tmp_path: Path, name: str, content: str, changes: dict[str, Any], texts: list[str]
) -> None:
    options = TextOptions(**changes)
    (tmp_path / name).write_text(content)
    items = [item for _, item in read_whole([str(tmp_path / name)], RECIPE.reading(options))]
    records = [item for item in items if isinstance(item, Record)]
    assert len(records) == len(items)
    made = [documents(each.value, options)[0] for each in records]
    assert [document.text for document in made] == texts


def test_real_files() -> None:
    options = TextOptions()
    records = real_records("bench/en.jsonl.zst", RECIPE.reading(options), most=2000)
    made = [documents(each.value, options)[0] for each in records]
    assert made[0].provenance == {"id": "en-0000000"}
    assert len({document.text for document in made}) > 1000
