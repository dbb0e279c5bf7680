"""Tasks that a file describes, and sequences: what the golden row `tasks` does not show."""

import json
from pathlib import Path
from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.tasks.toy import Desk
from trainer.tasks.catalogue import find_task
from trainer.tasks.task import TEST, TRAIN, Task

WORDS = {"bad": " bad", "good": " good"}
MOOD = {"pattern": "{review.text:cut} It was [MASK].", "verbalizer": WORDS}
REVIEW = {"review": {"text": "We laughed."}, "label": "good", "idx": "r1"}
ENDS = {"pattern": "{a}[MASK]", "choices_field": "ends"}
SAID = {"prompt": "Say", "answer": " x"}
PAIR = {"source": ' "Tea" is hot. ', "target": "tea "}


def described(desk: Desk, content: dict[str, Any]) -> Task:
    path = desk.folder / "mood.json"
    path.write_text(json.dumps(content))
    return find_task(str(path))


def test_blank_lines_count_but_hold_nothing(desk: Desk) -> None:
    path = desk.folder / "items.jsonl"
    lines = '{"prompt": "1"}\r\n\n  \n{"prompt": "\u2028 \\ud83d\\ude00 \\\\ud800"}\n{}\n'
    path.write_bytes(b"\xef\xbb\xbf" + lines.encode())
    with pytest.raises(UserError, match=r"items\.jsonl, line 5: there is no field \"prompt\""):
        desk.ask_file(find_task("prompted"), path, split=TEST)
    path.write_bytes(path.read_bytes()[:-3])
    questions = desk.ask_file(find_task("prompted"), path, split=TEST)
    shown = [desk.text(question.rows[0]) for question in questions]
    assert shown == ["<cls>1<gmask><sop>", "<cls>\u2028 \U0001f600 \\ud800<gmask><sop>"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}\n{"a": ["\\uD800"]}', r"line 2: .*\(\\ud800 in it is half a character"),
        ('{"\\udC00\\uD800": 1}', r"line 1: .*\(\\udc00 in it is half"),
        ('{"a": 1, "a": 2}', r"line 1: .*the key 'a' stands there twice, with 1, 2"),
    ],
)
def test_wrong_files(desk: Desk, content: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        desk.ask(find_task("prompted"), content)


@pytest.mark.parametrize(
    ("labels", "given", "number"),
    [
        (("false", "true"), True, 1),
        (("false", "true"), "False", 0),
        (("100", "108"), "108", 1),
        (("0", "1"), 1, 1),
        (("US", "us"), "us", 1),
        (("US", "us"), "Us", None),
    ],
)
def test_labels_are_compared_as_json_has_them(
    desk: Desk, labels: tuple[str, str], given: object, number: int | None
) -> None:
    words = dict(zip(labels, WORDS.values(), strict=True))
    task = described(desk, {**MOOD, "verbalizer": words})
    if number is None:
        with pytest.raises(UserError, match=r"\"label\" is 'Us', which the task does not know"):
            desk.ask(task, {**REVIEW, "label": given})
    else:
        (question,) = desk.ask(task, {**REVIEW, "label": given})
        assert (question.label, question.idx) == (number, "r1")


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([{"idx": 7, "id": "x"}, {"id": "x"}, {"id": None}, {"idx": ["a"]}], [7, "x", 2, ["a"]]),
        ([{"idx": 7}, {}, {"idx": 7}], "line 3: its name, 7, is that of line 1 too"),
        ([{"idx": "a"}, {"id": "a"}], 'line 2: its name, "a", is that of line 1 too'),
        ([{"idx": 1}, {}], "line 2: its name, 1, is that of line 1 too"),
    ],
)
@pytest.mark.parametrize("split", [TRAIN, TEST])
def test_names(desk: Desk, split: str, given: list[dict[str, Any]], names: object) -> None:
    for task, item in ((described(desk, MOOD), REVIEW), (find_task("prompted"), SAID)):
        items = [{**item, "idx": None, **one} for one in given]
        if isinstance(names, str):
            with pytest.raises(UserError, match=names):
                desk.ask(task, *items, split=split)
        else:
            assert [question.idx for question in desk.ask(task, *items, split=split)] == names


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
        ("{b}-{c}{|:cut}ef[MASK]", 9, "<cls>ab-ef<mask><eos><sop>"),
        ("{d:plain} {d:open}{|}[MASK]", 30, '<cls>"x"?! “x”<mask><eos><sop>'),
        ("{e:strip}{e}![MASK]", 30, "<cls>x x !<mask><eos><sop>"),
    ],
)
def test_what_is_cut_and_filtered(desk: Desk, pattern: str, length: int, shown: str) -> None:
    task = described(desk, {"pattern": pattern, "verbalizer": WORDS})
    item = {"a": "abcd", "b": "ab", "c": "cd", "d": "“x”?!", "e": " x ", "label": "bad"}
    (question,) = desk.ask(task, item, length=length)
    assert desk.text(question.rows[0]) == shown
    assert question.num_shortened == (length < 10)


@pytest.mark.parametrize(
    ("content", "item", "message"),
    [
        (MOOD, {**REVIEW, "review": "x"}, r'there is no field "review\.text"'),
        (ENDS, {"a": "x", "ends": ["b", "c"], "label": 2}, r'"label" is 2, .*one of 0, 1'),
        (ENDS, {"a": "x", "ends": ["b"], "label": 0}, r'"ends" is no list of at least 2 texts'),
        (ENDS, {"a": "x", "ends": ["b", "c", "c"], "label": 1}, r"the choices 1 and 2 are the sa"),
        ({"pattern": "[MASK]", "choices": ["{b}", "{c}"]}, {"b": 1, "c": 1, "label": 0}, "0 and 1"),
    ],
)
def test_wrong_items(
    desk: Desk, content: dict[str, Any], item: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=rf"items\.jsonl, line 1: .*{message}"):
        desk.ask(described(desk, content), item)


def test_a_model_without_task_masks_is_asked_with_mask(desk: Desk) -> None:
    def row(task: Task, **item: object) -> str:
        (question,) = desk.ask(task, item, split=TEST, task_mask=False)
        return desk.text(question.rows[0])

    assert row(find_task("seq2seq"), source="x").endswith("x<mask><eos>" + "<eos>" * 508 + "<sop>")
    # As generation reads a prompt then: eos follows.
    assert row(find_task("prompted"), prompt="x") == "<cls>x<mask><eos><sop>"
    own = described(desk, {"pattern": ["{a} [MASK]", "{a} [sMASK]"], "answer": "{b}"})
    assert row(own, a="x") == "<cls>x<mask><eos><sop>"
    for mark in ("[sMASK]", "[gMASK]"):
        with pytest.raises(UserError, match=r"the task mood: the pattern '.*' has a blank that"):
            row(described(desk, {"pattern": f"{{a}} {mark}", "answer": "{b}"}), a="x")


def test_long_targets_are_only_refused_where_they_are_learnt(desk: Desk) -> None:
    assert desk.ask(find_task("seq2seq"), PAIR, target_length=2)
    with pytest.raises(UserError, match=r"line 1: the target has 4 tokens, .*target-length is 2"):
        desk.ask(find_task("seq2seq"), PAIR, target_length=2, split=TRAIN)
    with pytest.raises(UserError, match=r"--source-length 3 leaves no token to the source"):
        desk.ask(find_task("seq2seq"), PAIR, source_length=3)


@pytest.mark.slow  # torchmetrics takes seconds to import
def test_rouge(desk: Desk) -> None:
    seq2seq = find_task("seq2seq")
    questions = desk.ask(seq2seq, {**PAIR, "target": "The tea is hot"}, {**PAIR, "target": "茶热"})
    exact = seq2seq.metrics(questions, ["the TEA is hot.", "茶热"])
    assert exact == pytest.approx({"rouge-1": 100.0, "rouge-2": 100.0, "rouge-l": 100.0})
    half = seq2seq.metrics(questions, ["hot is", "热茶"])
    # 2 of 2 and 2 of 4 words; no pair; one word in order. Then all, none, and one of two.
    assert half == pytest.approx(
        {"rouge-1": (200 / 3 + 100) / 2, "rouge-2": 0.0, "rouge-l": (100 / 3 + 50) / 2}, abs=1e-3
    )
    (unknown,) = desk.ask(find_task("prompted"), {"prompt": "x"}, split=TEST)
    assert unknown.facts == {"reference": None}


def test_files_of_lines(desk: Desk) -> None:
    source, target = desk.folder / "train.source", desk.folder / "train.target"
    source.write_text("Tea\n\nIce\n")
    target.write_text("a\nb\n")
    with pytest.raises(UserError, match=r"train\.source has 3 lines and .*train\.target 2: each"):
        desk.ask_file(find_task("seq2seq"), desk.folder, split=TRAIN)
    target.unlink()
    with pytest.raises(UserError, match=r'train\.source, line 1: there is no field "target"'):
        desk.ask_file(find_task("seq2seq"), desk.folder, split=TRAIN)


def test_the_tasks_of_the_page_are_read(desk: Desk) -> None:
    page = (Path(__file__).parents[3] / "docs" / "finetuning.md").read_text()
    blocks = [block.partition("```")[0] for block in page.split("```json\n")[1:]]
    own = [blocks[0], *blocks[1].splitlines()]
    assert len(own) == 4
    for text in own:
        assert described(desk, json.loads(text)).said.pattern
