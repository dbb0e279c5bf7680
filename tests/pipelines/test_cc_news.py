from typing import Any

import pytest

from pipelines.cc_news import RECIPE, CcNewsOptions, documents
from pipelines.corpus.document import Rejected

BODY = "It rained. " * 10


@pytest.mark.parametrize(
    ("title", "about", "text"),
    [
        ("Rain", "Wet days", f"Rain Wet days {BODY}"),
        ("Rain", "It rained.", f"Rain {BODY}"),
        ("Rain", None, f"Rain {BODY}"),
        ("Rain", "", f"Rain {BODY}"),
        (None, "Wet days", f"Wet days {BODY}"),
        ("It rained.", "It rained.", f"It rained. {BODY}"),
        (None, None, BODY),
    ],
)
def test_title_description_and_text(title: str | None, about: str | None, text: str) -> None:
    record = {"title": title, "description": about, "maintext": BODY, "url": "u", "date_publish": 7}
    (made,) = documents(record, CcNewsOptions())
    assert (made.text, made.prompt, made.reason) == (text, "", None)
    assert made.provenance == {"url": "u", "date": "7", "domain": ""}
    assert set(made.provenance) == set(RECIPE.provenance(CcNewsOptions()))


@pytest.mark.parametrize(("length", "reason"), [(96, None), (95, "too-short")])
def test_characters_of_the_whole_text_are_counted(length: int, reason: str | None) -> None:
    record = {"title": "Rain", "maintext": "x" * length}
    assert documents(record, CcNewsOptions())[0].reason == reason


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"title": "Rain"}, "missing-field"),
        ({"maintext": None}, "missing-field"),
        ({"maintext": 7}, "wrong-type"),
        ({"title": 7, "maintext": BODY}, "wrong-type"),
    ],
)
def test_what_is_no_article_is_rejected(record: dict[str, Any], reason: str) -> None:
    with pytest.raises(Rejected, match=f"^{reason}$"):
        documents(record, CcNewsOptions())
