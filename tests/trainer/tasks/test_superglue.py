"""Figures and predictions of SuperGLUE's tasks, and the errors of items that are wrong.

Their rows are the golden row `tasks`, and the reference's (test_reference.py).
"""

from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.tasks.toy import Desk
from trainer.tasks.catalogue import find_task
from trainer.tasks.task import TRAIN

COPA = {
    "premise": "It “rained”.",
    "choice1": "I got wet!",
    "choice2": "I stayed dry.",
    "question": "effect",
    "label": 1,
    "idx": 7,
}
WSC = {
    "text": "Ann saw Bea  and she,smiled .",
    "target": {"span1_text": "Ann", "span2_text": "she", "span1_index": 0, "span2_index": 4},
    "idx": 5,
    "label": True,
    "candidates": [{"text": name} for name in ("Bea", "Cy", "Bea")],
}
_ANSWERS = [{"text": "Tea’s.", "label": 1, "idx": 30}, {"text": "Ice", "label": 0, "idx": 31}]
_ASKED = {"idx": 8, "question": "What is hot ?", "answers": _ANSWERS}
MULTIRC = {"idx": 2, "passage": {"text": "Tea is hot. ", "questions": [_ASKED]}}
RECORD = {
    "idx": 4,
    "passage": {
        "text": "Ann met Bea.\n@highlight\nAnn left.",
        "entities": [{"start": 0, "end": 2}, {"start": 8, "end": 10}, {"start": 24, "end": 26}],
    },
    "qas": [{"idx": 9, "query": "Then @placeholder left.", "answers": [{"text": "Ann"}]}],
}


def test_wsc_with_candidates(desk: Desk) -> None:
    wsc = find_task("wsc")
    false = {**WSC, "idx": 6, "label": False}
    questions = desk.ask(wsc, WSC, false, candidates=True)
    assert [question.label for question in questions] == [0, None]
    assert wsc.metrics(questions, [0, 0]) == {"accuracy": 50.0}
    for candidates in ([], [{"text": "Ann"}]):  # Ann is who is asked about
        with pytest.raises(UserError, match="there are no other candidates"):
            desk.ask(wsc, {**WSC, "candidates": candidates}, candidates=True)


TWO = {**RECORD["qas"][0], "answers": [{"text": "the ANN!"}, {"text": "Ann Bea"}]}
ALONE = {**RECORD["passage"], "entities": RECORD["passage"]["entities"][:1]}


@pytest.mark.parametrize(
    ("name", "item", "given", "figures"),
    [
        # Answers, and whole questions.
        ("multirc", MULTIRC, [1, 1], {"f1a": 2 / 3, "em": 0.0, "acc": 50.0}),
        ("multirc", MULTIRC, [1, 0], {"f1a": 1.0, "em": 1.0, "acc": 100.0}),
        # Texts.
        ("record", {**RECORD, "qas": [TWO]}, [0], {"em": 100.0, "f1": 100.0}),
        ("record", {**RECORD, "qas": [TWO]}, [1], {"em": 0.0, "f1": pytest.approx(200 / 3)}),
        # A row alone is the most probable text, 1, or not, 0: there is nothing else to choose.
        ("record", {**RECORD, "passage": ALONE}, [0], {"em": 100.0, "f1": 100.0}),
        ("record", {**RECORD, "passage": ALONE}, [1], {"em": 100.0, "f1": 100.0}),
    ],
)
def test_figures(
    desk: Desk, name: str, item: dict[str, Any], given: list[int], figures: dict[str, float]
) -> None:
    task = find_task(name)
    questions = desk.ask(task, item)
    assert task.metrics(questions, given) == figures
    if len(questions[0].rows) == 1 and name == "record":
        assert task.lines(questions, given) == [{"idx": 9, "label": "Ann"}]
        assert [len(question.rows) for question in desk.ask(task, item, split=TRAIN)] == [1]


@pytest.mark.parametrize(
    ("name", "item", "message"),
    [
        ("copa", {**COPA, "label": 2}, r'the field "label" is 2, .*Expected one of 0, 1'),
        ("copa", {**COPA, "label": True}, r'"label" is True, which the task does not know'),
        ("copa", {**COPA, "question": "reason"}, r'"question" is \'reason\'. Expected cause or'),
        ("copa", {**COPA, "choice2": "?!"}, r"an answer is empty"),
        ("copa", {**COPA, "choice2": "i got wet."}, r"choices 0 and 1 are the same tokens"),
        ("copa", {**COPA, "premise": 3}, r'"premise" is 3. Expected a text'),
        ("wsc", {**WSC, "target": {**WSC["target"], "span2_index": 40}}, r"nothing of its 6 words"),
        ("wsc", {**WSC, "target": {**WSC["target"], "span2_text": "he"}}, r"pronoun 'he' should"),
        ("record", {**RECORD, "qas": [{**RECORD["qas"][0], "query": "x"}]}, r"@placeholder once"),
        (
            "record",
            {**RECORD, "passage": {"text": "Ann", "entities": [{"start": 0, "end": 3}]}},
            r"from character 0 to 3, and the passage has 3",
        ),
        ("multirc", {**MULTIRC, "idx": [2]}, r'"idx" is \[2\]\. Expected a whole number or a text'),
        ("multirc", {"idx": 1, "passage": {"text": "x", "questions": 3}}, r"a list of objects"),
    ],
)
def test_wrong_items(desk: Desk, name: str, item: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=rf"items\.jsonl, line 1: .*{message}"):
        desk.ask(find_task(name), item)


def test_a_wrong_item_is_named_by_its_line(desk: Desk) -> None:
    with pytest.raises(
        UserError, match=r"items\.jsonl, line 2: its name, dev-7, is that of line 1"
    ):
        desk.ask(find_task("copa"), COPA, COPA)
