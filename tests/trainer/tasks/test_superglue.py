"""Every task's rows of an invented item, and the errors of items that are wrong."""

from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.tasks.toy import Desk
from trainer.tasks.catalogue import find_task
from trainer.tasks.task import SPELLED, TEST, TRAIN

COPA = {
    "premise": "It “rained”.",
    "choice1": "I got wet!",
    "choice2": "I stayed dry.",
    "question": "effect",
    "label": 1,
    "idx": 7,
}
BOOLQ = {"passage": "Tea – it is hot.", "question": "is tea hot", "idx": 3, "label": True}
RTE = {"premise": "Tea is hot.", "hypothesis": "Tea boils?!", "idx": 0, "label": "not_entailment"}
CB = {**RTE, "label": "neutral"}
WIC = {"word": "bank", "sentence1": "A bank.", "sentence2": "The bank!", "idx": 1, "label": False}
WSC = {
    "text": "Ann saw Bea  and she,smiled .",
    "target": {"span1_text": "Ann", "span2_text": "she", "span1_index": 0, "span2_index": 4},
    "idx": 5,
    "label": True,
    "candidates": [{"text": name} for name in ("Bea", "Cy", "Bea")],
}
MULTIRC = {
    "idx": 2,
    "passage": {
        "text": "Tea is hot. ",
        "questions": [
            {
                "idx": 8,
                "question": "What is hot ?",
                "answers": [
                    {"text": "Tea’s.", "label": 1, "idx": 30},
                    {"text": "Ice", "label": 0, "idx": 31},
                ],
            }
        ],
    },
}
RECORD = {
    "idx": 4,
    "passage": {
        "text": "Ann met Bea.\n@highlight\nAnn left.",
        "entities": [{"start": 0, "end": 2}, {"start": 8, "end": 10}, {"start": 24, "end": 26}],
    },
    "qas": [{"idx": 9, "query": "Then @placeholder left.", "answers": [{"text": "Ann"}]}],
}

ROWS: list[tuple[str, dict[str, Any], int, list[str]]] = [
    (
        "copa",
        COPA,
        0,
        [
            '<cls>"i got wet" or "i stayed dry"? It “rained”, so<mask>.<eos><sop> i got wet',
            '<cls>"i got wet" or "i stayed dry"? It “rained”, so<mask>.<eos><sop> i stayed dry',
        ],
    ),
    (
        "copa",
        COPA,
        2,
        [
            '<cls>"i got wet" or "i stayed dry"?It “rained”<mask> i got wet<eos><sop> so',
            '<cls>"i got wet" or "i stayed dry"?It “rained”<mask> i stayed dry<eos><sop> so',
        ],
    ),
    ("boolq", BOOLQ, 0, ["<cls>Tea - it is hot. Question: is tea hot? Answer:<mask>.<eos><sop>"]),
    (
        "boolq",
        BOOLQ,
        5,
        [
            "<cls>Based on the following passage is tea hot?<mask>. Tea - it is hot.<eos><sop>",
        ],
    ),
    ("rte", RTE, 0, ['<cls>"Tea boils" ?<mask>, "Tea is hot."<eos><sop>']),
    (
        "rte",
        RTE,
        4,
        ["<cls>Tea is hot. question: Tea boils True or False? answer:<mask><eos><sop>"],
    ),
    ("cb", CB, 3, ["<cls>Tea boils?<mask>. Tea is hot.<eos><sop>"]),
    (
        "cb",
        CB,
        4,
        [
            "<cls>Tea is hot. question: Tea boils?! true, false or neither? answer:<mask>"
            "<eos><sop>",
        ],
    ),
    ("wic", WIC, 0, ['<cls>"A bank." / "The bank!" Similar sense of "bank"?<mask>.<eos><sop>']),
    ("wic", WIC, 2, ['<cls>bank . Sense (1) (a) "A bank." (<mask>) "The bank!"<eos><sop>']),
    (
        "wsc",
        WSC,
        0,
        [
            "<cls>Ann saw Bea and *she* ,smiled . The pronoun '*she*' refers to<mask>."
            "<eos><sop> Ann",
        ],
    ),
    (
        "multirc",
        MULTIRC,
        1,
        [
            '<cls>Tea is hot. Question: What is hot ? Is the correct answer "Tea\'s."?<mask>.<eos>'
            "<sop>",
        ],
    ),
    (
        "multirc",
        MULTIRC,
        3,
        ["<cls>Tea is hot What is hot - [<mask>]Tea's.<eos><sop>"],
    ),
    (
        "record",
        RECORD,
        0,
        [
            "<cls>Ann met Bea.\n- Ann left. Then<mask> left.<eos><sop> Ann",
            "<cls>Ann met Bea.\n- Ann left. Then<mask> left.<eos><sop> Bea",
        ],
    ),
]


@pytest.mark.parametrize(("name", "item", "pattern", "rows"), ROWS)
def test_rows(desk: Desk, name: str, item: dict[str, Any], pattern: int, rows: list[str]) -> None:
    question = desk.ask(find_task(name), item, pattern=pattern)[0]
    assert [desk.text(row) for row in question.rows] == rows


def test_answers_end_and_positions_stay_at_the_blank(desk: Desk) -> None:
    (question,) = desk.ask(find_task("copa"), COPA)
    row = question.rows[1]
    assert desk.answer(row) == " i stayed dry<eop>"
    assert (question.guid, question.idx, question.label) == ("dev-7", 7, 1)
    assert row.position_ids is not None
    assert row.sep is not None
    assert set(row.position_ids[0, row.sep :]) == {
        row.tokens.tolist().index(desk.tokenizer.special["mask"])
    }


def test_words_are_in_the_order_of_labels(desk: Desk) -> None:
    def words(name: str, item: dict[str, Any], pattern: int) -> list[str]:
        question = desk.ask(find_task(name), item, pattern=pattern)[0]
        return [desk.tokenizer.decode([word]) for word in question.words]

    assert words("boolq", BOOLQ, 4) == [" No", " Yes"]
    assert words("boolq", BOOLQ, 1) == [" false", " true"]
    assert words("rte", RTE, 1) == [" Yes", " No"]
    assert words("cb", CB, 1) == [" Yes", " No", " Maybe"]
    assert words("cb", CB, 4) == [" true", " false", " neither"]
    assert words("wic", WIC, 2) == ["2", "b"]
    assert words("multirc", MULTIRC, 0) == [" No", " Yes"]
    assert words("multirc", MULTIRC, 3) == [" False", " True"]


def test_words_may_be_spelled(desk: Desk) -> None:
    (question,) = desk.ask(find_task("rte"), RTE, pattern=0, form=SPELLED)
    assert [desk.answer(row) for row in question.rows] == [" Yes<eop>", " No<eop>"]
    assert (question.words, question.label) == ((), 1)


def test_training_on_copa_mirrors_every_item(desk: Desk) -> None:
    questions = desk.ask(find_task("copa"), COPA, {**COPA, "idx": 8, "label": 0}, split=TRAIN)
    assert [(question.guid, question.label) for question in questions] == [
        ("train-7", 1),
        ("train-8", 0),
        ("train-7m", 0),
        ("train-8m", 1),
    ]
    assert desk.text(questions[2].rows[0]).startswith('<cls>"i stayed dry" or "i got wet"?')


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


def test_wsc_trains_on_true_items_in_groups_of_nine(desk: Desk) -> None:
    names = [{"text": letter} for letter in "BCDEFGHIJKL"]
    many = {**WSC, "candidates": names}
    questions = desk.ask(
        find_task("wsc"), many, {**WSC, "idx": 6, "label": False}, split=TRAIN, candidates=True
    )
    said = [[desk.answer(row)[1] for row in question.rows] for question in questions]
    assert said == [["A", *"BCDEFGHIJ"], ["A", *"KLBCDEFGH"]]
    assert [question.guid for question in questions] == ["train-5", "train-5-1"]


def test_multirc_counts_answers_and_whole_questions(desk: Desk) -> None:
    multirc = find_task("multirc")
    questions = desk.ask(multirc, MULTIRC)
    assert [question.guid for question in questions] == ["dev-p2-q8-a30", "dev-p2-q8-a31"]
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
    figures = record.metrics(questions, [1])
    assert figures == {"em": 0.0, "f1": pytest.approx(200 / 3)}
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


def test_record_trains_on_each_answer_against_nine_others(desk: Desk) -> None:
    text = "ABCDEFGHIJKLMN"
    entities = [{"start": at, "end": at} for at in range(len(text))]
    query = {"idx": 0, "query": "@placeholder", "answers": [{"text": "A"}, {"text": "B"}]}
    item = {"idx": 1, "passage": {"text": text, "entities": entities}, "qas": [query]}
    one, two = desk.ask(find_task("record"), item, split=TRAIN)
    assert (one.guid, two.guid, one.label, two.label) == ("train-p1-q0-a0", "train-p1-q0-a1", 0, 0)
    for question, answer in ((one, "A"), (two, "B")):
        said = [desk.answer(row)[1] for row in question.rows]
        assert len(said) == len(set(said)) == 10
        assert said[0] == answer
        assert {"A", "B"} - set(said) == {"A", "B"} - {answer}


@pytest.mark.parametrize(
    ("name", "item", "message"),
    [
        ("copa", {**COPA, "label": 2}, r'line 1: the field "label" is 2, .*Expected one of 0, 1'),
        ("copa", {**COPA, "label": True}, r'"label" is True, which the task does not know'),
        ("copa", {**COPA, "question": "reason"}, r'"question" is \'reason\'. Expected cause or'),
        ("copa", {**COPA, "choice2": "?!"}, r"an answer is empty"),
        ("copa", {"premise": "x"}, r'no field "question". Expected it among premise: correct'),
        ("copa", {key: COPA[key] for key in COPA if key != "label"}, r"answer is needed"),
        ("copa", {**COPA, "premise": 3}, r'"premise" is 3. Expected a text'),
        ("rte", {**RTE, "label": "maybe"}, r"one of entailment, not_entailment"),
        ("wsc", {**WSC, "target": {**WSC["target"], "span2_index": 40}}, r"nothing of its 6 words"),
        ("wsc", {**WSC, "target": {**WSC["target"], "span2_text": "he"}}, r"pronoun 'he' should"),
        ("record", {**RECORD, "qas": [{**RECORD["qas"][0], "query": "x"}]}, r"@placeholder once"),
        (
            "record",
            {**RECORD, "passage": {"text": "Ann", "entities": [{"start": 0, "end": 3}]}},
            r"from character 0 to 3, and the passage has 3",
        ),
        ("copa", {**COPA, "choice2": "i got wet."}, r"choices 0 and 1 are the same, ' i got wet'"),
        ("multirc", {**MULTIRC, "idx": [2]}, r'"idx" is \[2\]\. Expected a whole number or a text'),
        ("multirc", {"idx": 1, "passage": {"text": "x", "questions": 3}}, r"a list of objects"),
    ],
)
def test_wrong_items(desk: Desk, name: str, item: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        desk.ask(find_task(name), item)
    assert str(caught.value).startswith(f"{desk.folder / 'items.jsonl'}, line 1: ")


def test_a_wrong_item_is_named_by_its_line(desk: Desk) -> None:
    with pytest.raises(UserError, match=r"items\.jsonl, line 2: its idx makes it dev-7, as line 1"):
        desk.ask(find_task("copa"), COPA, COPA)


def test_a_test_file_needs_no_labels(desk: Desk) -> None:
    bare = {key: value for key, value in COPA.items() if key != "label"}
    (question,) = desk.ask(find_task("copa"), bare, split=TEST)
    assert (question.guid, question.label) == ("test-7", None)


def test_a_model_without_blanks_is_refused(desk: Desk) -> None:
    with pytest.raises(UserError, match="the model reads from left to right"):
        desk.ask(find_task("copa"), COPA, is_causal=True)


def test_wsc_with_candidates_needs_them(desk: Desk) -> None:
    for candidates in ([], [{"text": "Ann"}]):  # Ann is who is asked about
        with pytest.raises(UserError, match="there are no other candidates"):
            desk.ask(find_task("wsc"), {**WSC, "candidates": candidates}, candidates=True)
    item = {**WSC, "candidates": [{"text": "Ann"}, {"text": "Bea"}]}
    (question,) = desk.ask(find_task("wsc"), item, candidates=True)
    assert [desk.answer(row) for row in question.rows] == [" Ann<eop>", " Bea<eop>"]
