"""Tasks that a file describes."""

import json
from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.tasks.toy import Desk
from trainer.tasks.catalogue import find_task
from trainer.tasks.task import TEST, TRAIN, VALIDATION, Asking, Task

MOOD = {
    "pattern": ["{review.text:cut} It was [MASK].", "So [MASK]: {review.text:cut} ({stars})"],
    "verbalizer": {"bad": " awful", "good": " great"},
    "label": "mood",
}
REVIEW = {"review": {"text": "We [MASK] laughed."}, "stars": 4, "mood": "good", "idx": "r1"}


def described(desk: Desk, content: dict[str, Any]) -> Task:
    path = desk.folder / "mood.json"
    path.write_text(json.dumps(content))
    return find_task(str(path))


def test_verbalizer(desk: Desk) -> None:
    task = described(desk, MOOD)
    (question,) = desk.ask(task, REVIEW)
    assert desk.text(question.rows[0]) == "<cls>We [MASK] laughed. It was<mask>.<eos><sop>"
    words = [desk.tokenizer.decode([word]) for word in question.words]
    assert (words, question.label, question.guid) == ([" awful", " great"], 1, "dev-0")
    assert task.lines([question], [0]) == [{"idx": "r1", "label": "bad"}]
    assert task.metrics([question], [1]) == {"accuracy": 100.0, "f1-macro": 1.0}
    (second,) = desk.ask(task, REVIEW, pattern=1, length=26)
    assert desk.text(second.rows[0]) == "<cls>So<mask>: We [MASK] laug (4)<eos><sop>"
    assert second.num_shortened == 1


@pytest.mark.parametrize(
    ("pattern", "length", "shown"),
    [
        ("{a:cut}ef[MASK]", 10, "<cls>abcdef<mask><eos><sop>"),
        ("{a:cut}ef[MASK]", 9, "<cls>abcef<mask><eos><sop>"),
        # The last that may be cut, until nothing of it is left; then the one before.
        ("{b:cut}{c:cut}ef[MASK]", 9, "<cls>abcef<mask><eos><sop>"),
        ("{b:cut}{c:cut}ef[MASK]", 7, "<cls>aef<mask><eos><sop>"),
        # The longest first, the last of equals.
        ("{a:even}[MASK]{c:even}", 9, "<cls>abc<mask>cd<eos><sop>"),
        ("{b:even}[MASK]{c:even}", 7, "<cls>ab<mask>c<eos><sop>"),
        ("{b:even}[MASK]{c:even}", 6, "<cls>a<mask>c<eos><sop>"),
        # Several fields as one string.
        ("{b} {c}{|:cut}ef[MASK]", 9, "<cls>ab ef<mask><eos><sop>"),
        ("{d:plain} {d:open}{|}[MASK]", 30, '<cls>"x"?! “x”<mask><eos><sop>'),
    ],
)
def test_what_is_cut_and_filtered(desk: Desk, pattern: str, length: int, shown: str) -> None:
    task = described(desk, {"pattern": pattern, "verbalizer": {"n": " No", "y": " Yes"}})
    item = {"a": "abcd", "b": "ab", "c": "cd", "d": "“x”?!", "label": "n"}
    (question,) = desk.ask(task, item, length=length)
    assert desk.text(question.rows[0]) == shown
    assert question.num_shortened == (length < 10)


def test_patterns_with_words_and_fillers_of_their_own(desk: Desk) -> None:
    task = described(
        desk,
        {
            "pattern": ["{a}[MASK]", {"text": "[MASK] {a}{choice}", "filler": "{b}"}],
            "choices": [" {b}", " {c}"],
            "default": 1,
        },
    )
    (question,) = desk.ask(task, {"a": "a", "b": "b", "c": "c", "label": 1})
    assert [desk.text(row) for row in question.rows] == [
        "<cls><mask> a b<eos><sop>b",
        "<cls><mask> a c<eos><sop>b",
    ]
    words = {"bad": " false", "good": " true"}
    task = described(desk, {**MOOD, "pattern": ["[MASK]", {"text": "[MASK]", "verbalizer": words}]})
    (question,) = desk.ask(task, REVIEW, pattern=1)
    assert [desk.tokenizer.decode([word]) for word in question.words] == [" false", " true"]


def test_first_metric(desk: Desk) -> None:
    task = described(desk, {**MOOD, "metric": "f1-macro"})
    questions = desk.ask(task, REVIEW, {**REVIEW, "mood": "bad", "idx": "r2"})
    figures = task.metrics(questions, [1, 1])
    assert list(figures.items()) == [("f1-macro", pytest.approx(1 / 3)), ("accuracy", 50.0)]


def test_choices_of_every_item(desk: Desk) -> None:
    task = described(desk, {"pattern": "{a:cut} [MASK]", "choices": [" {b}", " not {b}"]})
    (question,) = desk.ask(task, {"a": "x", "b": "y", "label": 0})
    assert [desk.text(row) for row in question.rows] == [
        "<cls>x<mask><eos><sop> y",
        "<cls>x<mask><eos><sop> not y",
    ]
    assert task.lines([question], [1]) == [{"idx": 0, "label": 1}]


def test_choices_in_a_field(desk: Desk) -> None:
    task = described(desk, {"pattern": "{a}[MASK]", "choices_field": "ends"})
    two, three = desk.ask(
        task,
        {"a": "x", "ends": ["b", "c"], "label": 1},
        {"a": "x", "ends": ["b", "c", "d"], "label": 2},
    )
    assert [len(question.rows) for question in (two, three)] == [2, 3]
    with pytest.raises(UserError, match=r'"label" is 2, .*one of 0, 1'):
        desk.ask(task, {"a": "x", "ends": ["b", "c"], "label": 2})
    with pytest.raises(UserError, match=r'"ends" is no list of at least 2 texts'):
        desk.ask(task, {"a": "x", "ends": ["b"], "label": 0})


def test_prompts_and_answers(desk: Desk) -> None:
    prompted = find_task("prompted")
    item = {"prompt": "Say {hi}. ", "answer": "hi [MASK]"}
    (train,) = desk.ask(prompted, item, split=TRAIN)
    assert desk.text(train.rows[0]) == "<cls>Say {hi}.<gmask><sop>hi [MASK]"
    assert desk.answer(train.rows[0]) == "hi [MASK]<eop>"
    (validated,) = desk.ask(prompted, item)
    assert desk.text(validated.rows[0]) == "<cls>Say {hi}.<gmask><sop>"
    assert not validated.rows[0].loss_mask.any()
    assert prompted.lines([validated], ["ho"]) == [
        {"idx": 0, "prediction": "ho", "reference": "hi [MASK]"}
    ]
    (asked,) = desk.ask(prompted, {"prompt": "Say"}, split=TEST)
    assert asked.facts == {"reference": None}


def test_prompts_and_answers_from_left_to_right(desk: Desk) -> None:
    prompted, item = find_task("prompted"), {"prompt": "Say ", "answer": "hi"}
    (train,) = desk.ask(prompted, item, split=TRAIN, is_causal=True)
    assert desk.text(train.rows[0]) == "Say hi"
    assert desk.answer(train.rows[0]) == "hi<eos>"
    (validated,) = desk.ask(prompted, item, is_causal=True)
    assert desk.text(validated.rows[0]) == "Say "
    task = described(desk, {"pattern": "{a} [MASK] b", "answer": "{c}"})
    with pytest.raises(UserError, match="leave the blank out"):
        desk.ask(task, {"a": "x", "c": "y"}, is_causal=True)


def test_an_answer_in_the_middle(desk: Desk) -> None:
    task = described(desk, {"pattern": "{a:cut} [sMASK] {{b}}", "answer": "{c}"})
    (question,) = desk.ask(task, {"a": "xyz", "c": "!"}, split=TRAIN, length=12)
    assert desk.text(question.rows[0]) == "<cls>xyz<smask> {b}<eos><sop>!"
    with pytest.raises(UserError, match=r"line 1: .* has 13 tokens, --length is 9"):
        desk.ask(task, {"a": "xyz", "c": "!!"}, split=TRAIN, length=9)
    with pytest.raises(UserError, match="the answer is empty"):
        desk.ask(task, {"a": "xyz", "c": ""}, split=TRAIN)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"pattern": "{a} [MASK]"}, "has not one of verbalizer, choices, choices_field and answer"),
        ({**MOOD, "answer": "x"}, "has not one of verbalizer"),
        ({**MOOD, "pattern": "{a}"}, r"the pattern '\{a\}' has 0 blanks, not one \[MASK\]"),
        ({**MOOD, "pattern": "[MASK][MASK]"}, r"has 2 blanks"),
        ({**MOOD, "pattern": "{a:short} [MASK]"}, r"a field is \{name\} or \{name:cut\}"),
        ({**MOOD, "pattern": "{a [MASK]"}, r"does not describe a task: "),
        ({**MOOD, "pattern": []}, r"there is no pattern"),
        ({**MOOD, "verbalizer": {"good": " great"}}, r"only one answer to choose from"),
        ({**MOOD, "metric": "bleu"}, r"metric is 'bleu', not one of accuracy, f1-macro"),
        ({**MOOD, "form": "long"}, r"form is 'long', not one of cloze, spelled"),
        ({**MOOD, "default": 2}, r"default is 2, not one of 0, 1"),
        (
            {**MOOD, "pattern": {"text": "[MASK]"}},
            r"the task\.pattern is ",
        ),
        (
            {**MOOD, "pattern": [{"text": "[MASK]", "verbalizer": {"bad": " x"}}]},
            r"the words of '\[MASK\]' are not for the labels of verbalizer",
        ),
        ({**MOOD, "patern": "x"}, r"the task\.patern is not known"),
        ({**MOOD, "verbalizer": {"a": 1, "b": " x"}}, r"verbalizer\.a is 1, not of type str"),
        ({"pattern": "{a}", "answer": "[MASK]"}, r"an answer has a blank"),
        ({**MOOD, "verbalizer": {"a": " x", "b": " y", "c": " x"}}, r"' x' is there for more than"),
        ({"pattern": "[MASK]", "choices": ["{b}", "{b}"]}, r"'\{b\}' is there for more than one"),
    ],
)
def test_wrong_descriptions(desk: Desk, content: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        described(desk, content)
    assert str(caught.value).startswith(str(desk.folder / "mood.json"))


def test_a_word_of_several_tokens(desk: Desk) -> None:
    task = described(desk, {**MOOD, "verbalizer": {"bad": " poor", "good": " great"}})
    with pytest.raises(UserError, match=r"the word ' poor' has 5 tokens .* Take --form spelled"):
        desk.ask(task, REVIEW)
    (question,) = desk.ask(task, REVIEW, form="spelled")
    assert [desk.answer(row) for row in question.rows] == [" poor<eop>", " great<eop>"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"pattern": "{a} [MASK]", "pattern": "[MASK]"}', "the key 'pattern' stands there twice"),
        ('{"verbalizer": {"bad": " x", "bad": " y"}}', "the key 'bad' stands there twice"),
        ('{"pattern": "\\ud800 [MASK]"}', r"\\ud800 in it is half a character"),
    ],
)
def test_descriptions_that_are_no_json(desk: Desk, content: str, message: str) -> None:
    path = desk.folder / "mood.json"
    path.write_text(content)
    with pytest.raises(UserError, match=rf"mood\.json is not valid JSON \({message}"):
        find_task(str(path))


def test_words_of_the_same_tokens(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    task = described(desk, {**MOOD, "verbalizer": {"bad": " great", "good": " Great"}})
    assert desk.ask(task, REVIEW, form="spelled")
    encode = desk.tokenizer.encode  # as a tokenizer that knows no capitals
    monkeypatch.setattr(desk.tokenizer, "encode", lambda text: encode(text.lower()))
    with pytest.raises(UserError, match=r"task mood: the words of bad and good, ' great' and ' G"):
        desk.ask(task, REVIEW)


def test_equal_choices_of_an_item(desk: Desk) -> None:
    each = described(desk, {"pattern": "{a} [MASK]", "choices": [" {b}", " {c}"]})
    with pytest.raises(UserError, match=r"line 2: the choices 0 and 1 are the same, ' x' and ' x'"):
        desk.ask(
            each,
            {"a": "a", "b": "x", "c": "y", "label": 0},
            {"a": "a", "b": "x", "c": "x", "label": 0},
        )
    listed = described(desk, {"pattern": "{a}[MASK]", "choices_field": "ends"})
    with pytest.raises(UserError, match=r"line 1: the choices 1 and 2 are the same, 'c' and 'c'"):
        desk.ask(listed, {"a": "x", "ends": ["b", "c", "c"], "label": 1})


@pytest.mark.parametrize("split", [TRAIN, VALIDATION, TEST])
def test_two_items_of_one_name(desk: Desk, split: str) -> None:
    said = {"prompt": "a", "answer": "b", "id": 3}
    for task, item in ((described(desk, MOOD), REVIEW), (find_task("prompted"), said)):
        with pytest.raises(UserError, match=r"line 3: the field \"idx?\" is .* names line 2 too"):
            desk.ask(task, {**item, "idx": "r0"}, item, item, split=split)


def test_a_model_without_task_masks_is_asked_with_mask(desk: Desk) -> None:
    def row(task: Task, **item: object) -> str:
        path = desk.file({"a": "x", "prompt": "x", "answer": "y", **item})
        (question,) = task.questions(
            path,
            split=VALIDATION,
            tokenizer=desk.tokenizer,
            asking=Asking(),
            task_mask=False,
        )
        return desk.text(question.rows[0])

    # As generation reads a prompt then: eos follows.
    assert row(find_task("prompted")) == "<cls>x<mask><eos><sop>"
    task = described(desk, {"pattern": ["{a} [MASK]", "{a} [sMASK]"], "answer": "{answer}"})
    assert row(task) == "<cls>x<mask><eos><sop>"
    for mark in ("[sMASK]", "[gMASK]"):
        task = described(desk, {"pattern": f"{{a}} {mark}", "answer": "{answer}"})
        with pytest.raises(UserError) as caught:
            row(task)
        assert str(caught.value) == (
            f"the task mood: pattern 0 has {mark}, and the model was trained without task masks. "
            "Write [MASK] there."
        )


def test_a_missing_field(desk: Desk) -> None:
    with pytest.raises(UserError, match=r'line 1: there is no field "review\.text"'):
        desk.ask(described(desk, MOOD), {"review": "x", "stars": 1, "mood": "bad"})
