import datetime
from typing import Any

import pytest

from pipelines.fineweb import FinewebOptions, documents

PAGE = {
    "text": "A page.",
    "id": "<urn:uuid:1>",
    "dump": "CC-MAIN-2024-10",
    "url": "https://example.org/",
    "date": "2024-02-29T00:00:00Z",
    "file_path": "s3://commoncrawl/x.warc.gz",
    "language": "en",
    "language_score": 0.98,
    "token_count": 3,
}


@pytest.mark.parametrize(
    ("field", "value", "other"),
    [
        ("language_score", "high", '{"language_score":"high"}'),
        ("token_count", 2.5, '{"token_count":2.5}'),
        ("token_count", True, '{"token_count":true}'),
        ("token_count", 2**64 - 1, '{"token_count":18446744073709551615}'),
        ("language_score", 2**53 + 1, '{"language_score":9007199254740993}'),
    ],
)
def test_what_a_column_does_not_fit_is_kept_as_json(field: str, value: Any, other: str) -> None:
    (made,) = documents({**PAGE, field: value}, FinewebOptions())
    assert field not in made.provenance
    assert made.provenance["other"] == other


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("date", datetime.date(2024, 2, 29), "2024-02-29"),
        ("url", b"https://example.org/", "https://example.org/"),
        ("top_langs", {"b": 0.5, "a": 1}, '{"a":1,"b":0.5}'),
        ("dump", None, ""),
    ],
)
def test_a_column_of_text_takes_any_value_as_text(field: str, value: Any, text: str) -> None:
    (made,) = documents({**PAGE, field: value}, FinewebOptions())
    assert made.provenance[field] == text
    assert made.provenance["other"] == ""
