from typing import Any

import pytest

from pipelines.corpus.document import Rejected
from pipelines.zhidao import RECIPE, ZhidaoOptions, documents

PROMPT = "问题：怎么办？问题描述：很急回答："


def question(best: Any = None, *others: Any, **changes: Any) -> dict[str, Any]:
    return {
        "title": "怎么办？",
        "content": "很急",
        "best_answer": best,
        "other_answers": list(others),
        **changes,
    }


def answer(length: int) -> dict[str, str]:
    return {"content": "答" * length}


@pytest.mark.parametrize(
    ("record", "made"),
    [
        (question(answer(11)), [("best", 11, None)]),
        (question(answer(10)), [("best", 10, "too-short")]),
        (
            question(answer(11), answer(101), answer(100)),
            [("best", 11, None), ("other", 101, None), ("other", 100, "too-short")],
        ),
        (question(None, answer(101)), [("other", 101, None)]),
        (question({}, answer(101)), [("other", 101, None)]),
        (question(answer(11), other_answers=None), [("best", 11, None)]),
        (question({"content": None}), [("best", 0, "too-short")]),
    ],
)
def test_every_answer_makes_a_document(
    record: dict[str, Any], made: list[tuple[str, int, str | None]]
) -> None:
    found = documents(record, ZhidaoOptions())
    assert [(each.provenance["answer"], len(each.text), each.reason) for each in found] == made
    assert {each.prompt for each in found} == {PROMPT}
    assert {*found[0].provenance} == {*RECIPE.provenance(ZhidaoOptions())}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (question(answer(50), title=None), "no-title"),
        (question(answer(50), title=""), "no-title"),
        ({}, "no-title"),
        (question(), "no-answer"),
        ({"title": "x"}, "no-answer"),
    ],
)
def test_questions_that_are_left_out_count_as_one(record: dict[str, Any], reason: str) -> None:
    assert [(each.text, each.reason) for each in documents(record, ZhidaoOptions())] == [
        ("", reason)
    ]


@pytest.mark.parametrize(
    "record",
    [
        question("text"),
        question(answer(50), "text"),
        question(answer(50), other_answers="text"),
        question({"content": 7}),
        question(answer(50), title=7),
    ],
)
def test_what_is_no_question_is_rejected(record: dict[str, Any]) -> None:
    with pytest.raises(Rejected, match=r"^wrong-type$"):
        documents(record, ZhidaoOptions())


def test_a_missing_or_long_description() -> None:
    (made,) = documents(question(answer(11), content=None), ZhidaoOptions())
    assert made.prompt == "问题：怎么办？问题描述：回答："
    (made,) = documents(question(answer(11), content="长" * 200), ZhidaoOptions())
    assert made.prompt == f"问题：怎么办？问题描述：{'长' * 100}......回答："
