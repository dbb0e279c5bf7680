from typing import Any

import pytest

from pipelines.corpus.document import Rejected
from pipelines.corpus.recipe import SAMPLE, load_recipe
from pipelines.segments.rows import REJECTS
from pipelines.wudao import RECIPE, WudaoOptions, documents

LONG = "字" * 200


@pytest.mark.parametrize(
    ("record", "changes", "text"),
    [
        ({"title": "标题", "content": LONG}, {}, f"标题 {LONG}"),
        ({"title": " 标题\n", "content": LONG}, {}, f"标题 {LONG}"),
        ({"title": "", "content": LONG}, {}, LONG),
        ({"title": " \n", "content": LONG}, {}, LONG),
        ({"title": None, "content": LONG}, {}, LONG),
        ({"content": LONG}, {}, LONG),
        ({"title": "字字", "content": LONG}, {}, LONG),
        ({"title": " 字字 ", "content": LONG}, {}, LONG),
        ({"title": LONG, "content": LONG}, {}, LONG),
        ({"title": "标题", "content": f"字标题{LONG}"}, {}, f"标题 字标题{LONG}"),
        ({"title": "字字", "content": LONG}, {"title": "always"}, f"字字 {LONG}"),
        ({"title": "", "content": LONG}, {"title": "always"}, LONG),
        ({"title": "标题", "content": LONG}, {"title": "never"}, LONG),
        ({"title": "标题", "content": LONG}, {"title_separator": "\n"}, f"标题\n{LONG}"),
        ({"title": "标题", "content": LONG}, {"title_separator": ""}, f"标题{LONG}"),
        ({"title": "标题", "content": f"　{LONG}\n"}, {}, f"标题 　{LONG}\n"),
    ],
)
def test_text_of_a_page(record: dict[str, Any], changes: dict[str, Any], text: str) -> None:
    (made,) = documents(record, WudaoOptions(**changes))
    assert (made.text, made.reason) == (text, None)


@pytest.mark.parametrize(
    ("record", "min_chars", "reason"),
    [
        ({"content": "字" * 100}, 101, "too-short"),
        ({"content": "字" * 101}, 101, None),
        ({"title": "一", "content": "字" * 98}, 101, "too-short"),  # title, space, content: 100
        ({"title": "一", "content": "字" * 99}, 101, None),
        ({"content": ""}, 101, "too-short"),
        ({"content": ""}, 0, None),
        ({"content": "字" * 4}, 5, "too-short"),
        ({"content": "𠀀" * 5}, 5, None),
    ],
)
def test_characters_of_the_whole_text_are_counted(
    record: dict[str, Any], min_chars: int, reason: str | None
) -> None:
    assert documents(record, WudaoOptions(min_chars=min_chars))[0].reason == reason


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({}, "missing-field"),
        ({"title": "标题"}, "missing-field"),
        ({"title": "标题", "content": None}, "missing-field"),
        ({"title": "标题", "content": 7}, "wrong-type"),
        ({"title": "标题", "content": [LONG]}, "wrong-type"),
        ({"title": "标题", "content": {"text": LONG}}, "wrong-type"),
        ({"title": 7, "content": LONG}, "wrong-type"),
        ({"title": False, "content": LONG}, "wrong-type"),
    ],
)
def test_what_is_no_page_is_rejected(record: dict[str, Any], reason: str) -> None:
    assert reason in REJECTS
    with pytest.raises(Rejected, match=f"^{reason}$"):
        documents(record, WudaoOptions())


@pytest.mark.parametrize(
    ("fields", "origin"),
    [
        ({"uniqueKey": "ab12", "dataType": "新闻"}, {"id": "ab12", "category": "新闻"}),
        ({"uniqueKey": None, "dataType": 3}, {"id": "", "category": ""}),
        ({"id": 5}, {"id": "", "category": ""}),
    ],
)
def test_provenance_is_kept_where_it_is_text(
    fields: dict[str, Any], origin: dict[str, str]
) -> None:
    (made,) = documents({"content": LONG, **fields}, WudaoOptions())
    assert made.provenance == origin
    assert set(made.provenance) == set(RECIPE.provenance(WudaoOptions()))


def test_recipe_is_found_by_its_module_and_has_its_sample() -> None:
    assert load_recipe("pipelines.wudao") is RECIPE
    assert sorted(path.name for path in SAMPLE.glob(RECIPE.pattern))
    assert (SAMPLE / "sample.model").is_file()
    assert RECIPE.sample_tokenizer == f"sentencepiece:{SAMPLE / 'sample.model'}"
