"""Figures and predictions of SuperGLUE's tasks, and the errors of items that are wrong.

Their rows are the golden row `tasks`, and the reference's (test_reference.py).
"""

from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.tasks.toy import Desk
from trainer.tasks.catalogue import find_task
from trainer.tasks.task import TEST, TRAIN

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
    true, false = desk.ask(wsc, WSC, {**WSC, "idx": 6, "label": False}, candidates=True)
    assert [desk.answer(row) for row in true.rows] == [" Ann<eop>", " Bea<eop>", " Cy<eop>"]
    assert (true.label, false.label) == (0, None)
    assert wsc.metrics([true, false], [0, 0]) == {"accuracy": 50.0}
    assert wsc.lines([true, false], [0, 2]) == [
        {"idx": 5, "label": "True"},
        {"idx": 6, "label": "False"},
    ]
    for candidates in ([], [{"text": "Ann"}]):  # Ann is who is asked about
        with pytest.raises(UserError, match="there are no other candidates"):
            desk.ask(wsc, {**WSC, "candidates": candidates}, candidates=True)


def test_multirc_counts_answers_and_whole_questions(desk: Desk) -> None:
    multirc = find_task("multirc")
    questions = desk.ask(multirc, MULTIRC)
    assert multirc.metrics(questions, [1, 1]) == {"f1a": 2 / 3, "em": 0.0, "acc": 50.0}
    assert multirc.metrics(questions, [1, 0]) == {"f1a": 1.0, "em": 1.0, "acc": 100.0}
    answers = [{"idx": 30, "label": 1}, {"idx": 31, "label": 0}]
    assert multirc.lines(questions, [1, 0]) == [
        {"idx": 2, "passage": {"questions": [{"idx": 8, "answers": answers}]}}
    ]


def test_record_compares_texts(desk: Desk) -> None:
    record = find_task("record")
    two = {**RECORD["qas"][0], "answers": [{"text": "the ANN!"}, {"text": "Ann Bea"}]}
    questions = desk.ask(record, {**RECORD, "qas": [two]})
    assert record.metrics(questions, [0]) == {"em": 100.0, "f1": 100.0}
    assert record.metrics(questions, [1]) == {"em": 0.0, "f1": pytest.approx(200 / 3)}
    assert record.lines(questions, [1]) == [{"idx": 9, "label": "Bea"}]


def test_record_with_a_single_entity(desk: Desk) -> None:
    record = find_task("record")
    entities = RECORD["passage"]["entities"][:1]
    item = {**RECORD, "passage": {**RECORD["passage"], "entities": entities}}
    (question,) = desk.ask(record, item)
    # A row alone is the most probable text, 1, or not, 0: there is nothing else to choose.
    for given in (0, 1):
        assert record.lines([question], [given]) == [{"idx": 9, "label": "Ann"}]
        assert record.metrics([question], [given]) == {"em": 100.0, "f1": 100.0}
    assert [len(question.rows) for question in desk.ask(record, item, split=TRAIN)] == [1]


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


def test_a_test_file_needs_no_labels(desk: Desk) -> None:
    bare = {key: value for key, value in COPA.items() if key != "label"}
    (question,) = desk.ask(find_task("copa"), bare, split=TEST)
    assert (question.guid, question.label) == ("test-7", None)
