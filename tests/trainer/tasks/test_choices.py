import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shards.errors import UserError
from tests.trainer.tasks.harness import FOLDER, figures, phrasing
from trainer.tasks.choices import READERS, ChoicesExam
from trainer.tasks.exam import Answers
from trainer.tasks.items import Item, read_items

HELLASWAG = {
    "activity_label": "Cooking",
    "ctx_a": "A cook stirs.",
    "ctx_b": "she",
    "endings": ["tastes it.", "flies away."],
    "label": 0,
}
ARC = {"question": "Why?", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "B"}
COPA = {
    "premise": "It rained.",
    "choice1": "I got wet.",
    "choice2": "I sang.",
    "question": "effect",
    "label": 0,
}
OWN = {"query": "One, two,", "choices": ["three", "apple"], "label": 0}


def read(name: str, fields: dict[str, Any]) -> Any:
    return READERS[name](Item(fields=fields, path=Path("items.jsonl"), line=3))


@pytest.mark.parametrize("name", ["hellaswag", "arc", "copa"])
def test_texts_are_those_of_lm_evaluation_harness(name: str) -> None:
    asked = [READERS[name](item) for item in read_items(FOLDER / f"{name}.jsonl")]
    requests = [
        [[question.context, f" {choice}"] for choice in question.choices] for question in asked
    ]
    assert requests == figures()[name]["requests"]


def test_copa_loses_the_last_character_of_a_premise_as_in_the_harness() -> None:
    # Its template drops it whatever it is; all premises of COPA end with a full stop.
    premises = [item.fields["premise"] for item in read_items(FOLDER / "copa.jsonl")]
    contexts = [question[0][0] for question in figures()["copa"]["requests"]]
    for premise, context in zip(premises, contexts, strict=True):
        assert context.rsplit(" ", 1)[0] == premise[:-1]
    assert read("copa", {**COPA, "premise": "It rained "}).context == "It raine therefore"


def test_arc_as_it_was_published_and_as_the_hub_has_it() -> None:
    choices = [{"text": "a", "label": "A"}, {"text": "b", "label": "B"}]
    published = {"question": {"stem": "Why?", "choices": choices}, "answerKey": "B"}
    assert read("arc", published) == read("arc", ARC)
    assert read("arc_easy", ARC).label == 1


def test_labels_may_be_written_as_texts() -> None:
    assert read("hellaswag", {**HELLASWAG, "label": "1"}).label == 1


def test_of_equal_scores_the_first_counts() -> None:
    exam = ChoicesExam(
        phrasing=phrasing(),
        asked=(),
        ends=(2, 4, 7),
        characters=(1, 2, 4, 2, 1, 1, 1),
        labels=(0, 0, 2),
    )
    scores = np.array([-2.0, -2.0, -4.0, -3.0, -5.0, -1.0, -1.0])
    answers = Answers(
        log_probability=scores, num_correct=np.zeros(7, int), num_targets=np.ones(7, int)
    )
    assert exam.figures(answers) == {"acc": 1 / 3, "acc_norm": 1 / 3}


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("hellaswag", {**HELLASWAG, "label": 2}, r'"label" is 2.*Expected one of 0, 1'),
        ("hellaswag", {**HELLASWAG, "label": True}, '"label" is True'),
        ("hellaswag", {**HELLASWAG, "label": None}, 'no field "label"'),
        ("hellaswag", {**HELLASWAG, "endings": ["a"]}, "list of at least 2 texts"),
        ("hellaswag", {**HELLASWAG, "endings": ["a", " "]}, "list of at least 2 texts"),
        ("hellaswag", {**HELLASWAG, "endings": ["a", "[step]"]}, "nothing but brackets"),
        ("hellaswag", {"ctx_a": "x", "ctx_b": "y"}, 'no field "endings"'),
        ("arc", {**ARC, "answerKey": "C"}, r'"answerKey" is \'C\'.*Expected one of A, B'),
        ("arc", {**ARC, "choices": {"text": ["a", "b"], "label": ["A"]}}, "at least 2 texts"),
        (
            "arc",
            {**ARC, "choices": {"text": ["a", "b"], "label": ["A", "B", "C"]}},
            "2 choices have 3 labels",
        ),
        ("arc", {**ARC, "question": "  "}, "\"question\" is '  '. Expected words"),
        ("copa", {**COPA, "question": "why"}, "Expected one of cause, effect"),
        ("copa", {**COPA, "label": 2}, '"label" is 2'),
        ("choices", {**OWN, "choices": "three"}, "list of at least 2 texts"),
        ("choices", {"choices": ["a", "b"]}, 'no field "query"'),
        ("choices", {**OWN, "choices": ["b", "a", " b"]}, "choices 0 and 2 are the same, 'b'"),
        ("copa", {**COPA, "choice2": "i got wet."}, "choices 0 and 1 are the same, ' i got wet.'"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    name: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=rf"items\.jsonl, line 3: .*{message}"):
        read(name, fields)


def test_equal_choices_of_published_files_are_told(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    equal = {**HELLASWAG, "endings": ["tastes it.", "[step] tastes it.", "flies."]}
    path.write_text("\n".join(map(json.dumps, [HELLASWAG, equal])))
    exam = ChoicesExam.of(path, READERS["hellaswag"], phrasing())
    assert exam.counts == {"items": 2, "cut": 0, "with equal choices": 1}
    path.write_text(json.dumps({**ARC, "choices": {"text": ["a", "a"], "label": ["A", "B"]}}))
    assert ChoicesExam.of(path, READERS["arc"], phrasing()).num_equal == 1


@pytest.mark.parametrize(("changes", "room"), [({}, 96), ({"is_causal": False, "mask": 506}, 93)])
def test_a_choice_that_does_not_fit_is_refused(
    tmp_path: Path, changes: dict[str, Any], room: int
) -> None:
    path = tmp_path / "items.jsonl"
    lines = [OWN, {**OWN, "choices": ["three", "\x01" * 200]}]
    path.write_text("\n".join(map(json.dumps, lines)))
    message = (
        rf"items\.jsonl, line 2, choice 1: .* tokens, and in a row of 96 there is room for {room}"
    )
    with pytest.raises(UserError, match=message):
        ChoicesExam.of(path, READERS["choices"], phrasing(**changes))


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text("\n\n")
    with pytest.raises(UserError, match=r"items\.jsonl holds nothing"):
        ChoicesExam.of(path, READERS["choices"], phrasing())
