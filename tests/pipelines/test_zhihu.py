from typing import Any

import pytest

from pipelines.corpus.document import Rejected
from pipelines.zhihu import RECIPE, ZhihuOptions, documents

ANSWER = {
    "q_title": "如何评价？",
    "q-content": "描述",
    "user-signature": "某人",
    "ans-content": "答" * 101,
    "ans-up-num": "3",
}


@pytest.mark.parametrize(
    ("changes", "prompt"),
    [
        ({}, "问题：如何评价？问题描述：描述回答用户：某人 回答："),
        ({"q-content": None}, "问题：如何评价？问题描述：回答用户：某人 回答："),
        (
            {"q-content": "长" * 101, "user-signature": None},
            f"问题：如何评价？问题描述：{'长' * 100}......回答用户： 回答：",
        ),
    ],
)
def test_the_question_is_the_prompt(changes: dict[str, Any], prompt: str) -> None:
    (made,) = documents({**ANSWER, **changes}, ZhihuOptions())
    assert (made.prompt, made.text, made.reason) == (prompt, "答" * 101, None)


@pytest.mark.parametrize(
    ("length", "votes", "reason"),
    [
        (101, "0", None),
        (100, "1000", "too-short"),
        (100, "1001", None),
        (100, 1001, None),
        (1, 5000, None),
        (100, None, "too-short"),
        (100, "many", "too-short"),
        (100, -5, "too-short"),
    ],
)
def test_an_answer_is_long_or_liked(length: int, votes: Any, reason: str | None) -> None:
    (made,) = documents(
        {**ANSWER, "ans-content": "答" * length, "ans-up-num": votes}, ZhihuOptions()
    )
    assert made.reason == reason
    assert made.provenance == {"votes": "" if votes is None else str(votes)}
    assert set(made.provenance) == set(RECIPE.provenance(ZhihuOptions()))


@pytest.mark.parametrize("field", ["q_title", "ans-content"])
def test_question_and_answer_are_needed(field: str) -> None:
    with pytest.raises(Rejected, match=r"^missing-field$"):
        documents({**ANSWER, field: None}, ZhihuOptions())
    with pytest.raises(Rejected, match=r"^wrong-type$"):
        documents({**ANSWER, field: 7}, ZhihuOptions())
