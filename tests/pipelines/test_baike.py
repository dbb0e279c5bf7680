from typing import Any

import pytest

from pipelines.baike import RECIPE, BaikeOptions, documents
from pipelines.corpus.document import Rejected


@pytest.mark.parametrize(
    ("record", "changes", "text"),
    [
        ({"title": "茶", "abstract": "摘要", "content": "正文"}, {}, "茶摘要正文"),
        (
            {"title": "茶", "abstract": "摘要", "content": "正文"},
            {"separator": "\n"},
            "茶\n摘要\n正文",
        ),
        ({"title": "茶", "abstract": None, "content": "正文"}, {"separator": "\n"}, "茶\n正文"),
        ({"content": "正文"}, {}, "正文"),
        ({"title": "", "abstract": "", "content": ""}, {}, ""),
    ],
)
def test_parts_are_glued(record: dict[str, Any], changes: dict[str, Any], text: str) -> None:
    (made,) = documents(record, BaikeOptions(**changes))
    assert (made.text, made.prompt, made.reason) == (text, "", None)
    assert made.provenance == {"title": record.get("title", "")}
    assert set(made.provenance) == set(RECIPE.provenance(BaikeOptions()))


@pytest.mark.parametrize(
    ("record", "reason"), [({}, "missing-field"), ({"title": 7, "content": "x"}, "wrong-type")]
)
def test_what_is_no_article_is_rejected(record: dict[str, Any], reason: str) -> None:
    with pytest.raises(Rejected, match=f"^{reason}$"):
        documents(record, BaikeOptions())
