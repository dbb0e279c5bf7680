"""Rows of sources and targets, of invented items."""

import json
from pathlib import Path

import pytest

from shards.errors import UserError
from tests.trainer.tasks.toy import Desk
from trainer.tasks.catalogue import find_task
from trainer.tasks.question import Question
from trainer.tasks.task import TEST, TRAIN, VALIDATION, Asking

ITEM = {"source": " “Tea” is hot. ", "target": "tea "}


def test_summary(desk: Desk) -> None:
    (question,) = desk.ask(find_task("xsum"), ITEM, split=TRAIN, source_length=28, target_length=8)
    (row,) = question.rows
    prompt = '<cls><smask> Content: "Tea" is hot.'
    assert desk.text(row) == f"{prompt}<eos><eos><eos><sop> tea"
    assert desk.answer(row) == " tea<eop>"
    assert row.sep == 28
    assert row.position_ids is not None
    assert row.position_ids[:, 28:].tolist() == [[1] * 4, [1, 2, 3, 4]]
    assert question.facts == {"reference": "tea"}


def test_padding_may_be_hidden(desk: Desk) -> None:
    (question,) = desk.ask(find_task("xsum"), ITEM, split=TRAIN, hide_padding=True)
    assert desk.text(question.rows[0]) == '<cls><smask> Content: "Tea" is hot.<sop> tea'


def test_a_long_source_is_cut_at_its_end_or_start(desk: Desk) -> None:
    (summary,) = desk.ask(find_task("xsum"), ITEM, split=TEST, source_length=16)
    assert desk.text(summary.rows[0]) == '<cls><smask> Content: "Tea"'[:-1] + "<sop>"
    (plain,) = desk.ask(find_task("seq2seq"), ITEM, split=TEST, source_length=8)
    assert desk.text(plain.rows[0]) == "<cls> hot.<smask><eos><sop>"
    assert (summary.num_shortened, plain.num_shortened) == (1, 1)
    with pytest.raises(UserError, match="--source-length 3 leaves no token to the source"):
        desk.ask(find_task("seq2seq"), ITEM, split=TEST, source_length=3)


def test_a_long_target_is_refused_unless_it_may_be_cut(desk: Desk) -> None:
    seq2seq = find_task("seq2seq")
    items = [ITEM, {**ITEM, "target": "tea is hot"}, {**ITEM, "target": "tea is cold"}]
    with pytest.raises(
        UserError, match=r"line 2: this target is longer than --target-length 5 .* 1 more of 3"
    ):
        desk.ask(seq2seq, *items, split=TRAIN, target_length=5)
    questions = desk.ask(seq2seq, *items, split=TRAIN, target_length=5, cut_targets=True)
    assert [desk.answer(question.rows[0]) for question in questions] == [
        " tea<eop>",
        " tea i",
        " tea i",
    ]
    assert len(desk.ask(seq2seq, *items, target_length=5)) == 3  # nothing is learnt there


def test_words_of_gigaword_and_cnn(desk: Desk) -> None:
    item = {"source": "-lrb- UNK &amp; [UNK] ``x'' n't <S_SEP>", "target": "a <S_SEP> <unk>"}
    (giga,) = desk.ask(find_task("gigaword"), item, split=TRAIN, hide_padding=True)
    assert desk.text(giga.rows[0]) == (
        "<cls><smask> Content: ( <unk> & [<unk>] ``x'' n't <S_SEP><sop> a <S_SEP> <unk>"
    )
    (cnn,) = desk.ask(find_task("cnn_dm"), item, split=TRAIN, hide_padding=True)
    assert desk.text(cnn.rows[0]) == (
        '<cls><smask> Content: -lrb- UNK &amp; <unk> "x"n\'t <sop> a <sep> <unk>'
    )
    (xsum,) = desk.ask(find_task("xsum"), item, split=TRAIN, hide_padding=True)
    assert "[UNK]" in desk.text(xsum.rows[0])
    assert 307 not in xsum.rows[0].tokens


def test_questions_of_a_context(desk: Desk) -> None:
    answers = [{"text": "hot"}, {"text": "hot"}, {"text": " warm"}]
    question = {"question": "How is it?", "id": "q1", "answers": answers}
    paragraph = {"context": "Tea is hot or warm.", "qas": [question]}
    path = desk.folder / "items.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))

    def texts(name: str, length: int) -> list[str]:
        questions = find_task(name).questions(
            path,
            split=TRAIN,
            tokenizer=desk.tokenizer,
            asking=Asking(source_length=length, hide_padding=True),
        )
        return [desk.text(question.rows[0]) for question in questions]

    assert texts("squad_generation", 99) == [
        "<cls>Tea is hot or warm. Question:<smask> Answer: hot<sop> How is it?",
        "<cls>Tea is hot or warm. Question:<smask> Answer:  warm<sop> How is it?",
    ]
    assert texts("squad_generation", 21)[0] == "<cls> is hot<smask> Answer: hot<sop> How is it?"
    assert texts("cmrc", 99)[1] == (
        "<cls>问题：How is it?答案：<mask>Tea is hot or warm.<sop> warm"
    )


def squad(desk: Desk, *questions: dict[str, object]) -> Path:
    paragraph = {"context": "Tea is hot.", "qas": [*questions]}
    path = desk.folder / "items.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    return path


ANSWERED = {"question": "How is it?", "id": "q1", "answers": [{"text": "hot"}]}


@pytest.mark.parametrize("split", [TRAIN, VALIDATION, TEST])
@pytest.mark.parametrize("name", ["cmrc", "squad_generation"])
@pytest.mark.parametrize("answers", [{"answers": []}, {}])
def test_a_question_without_answers(
    desk: Desk, name: str, split: str, answers: dict[str, object]
) -> None:
    path = squad(desk, ANSWERED, {"question": "Is it wet?", "id": "q2", **answers})
    task = find_task(name)

    def ask() -> list[Question]:
        return task.questions(
            path, split=split, tokenizer=desk.tokenizer, asking=Asking(hide_padding=True)
        )

    if split == TEST and name == "cmrc":  # whose answers are what is asked for
        said = task.lines(ask(), ["a", "b"])
        assert said == [
            {"idx": "q1", "prediction": "a", "reference": "hot"},
            {"idx": "q2", "prediction": "b", "reference": None},
        ]
        return
    with pytest.raises(UserError, match=r"items\.json, line 1: the question 'q2' has no answers, "):
        ask()


def test_questions_to_be_written_are_not_known_in_a_test_file(desk: Desk) -> None:
    path = squad(desk, {"answers": [{"text": "hot"}]}, {"id": "q", "answers": [{"text": "Tea"}]})
    task = find_task("squad_generation")
    questions = task.questions(
        path, split=TEST, tokenizer=desk.tokenizer, asking=Asking(hide_padding=True)
    )
    assert desk.text(questions[1].rows[0]) == ("<cls>Tea is hot. Question:<smask> Answer: Tea<sop>")
    assert [line["idx"] for line in task.lines(questions, ["a", "b"])] == [0, "q"]


def test_without_task_masks_the_blank_is_mask(desk: Desk) -> None:
    path = squad(desk, ANSWERED)
    given = {"tokenizer": desk.tokenizer, "asking": Asking(hide_padding=True), "split": TEST}
    (asked,) = find_task("squad_generation").questions(path, task_mask=False, **given)
    assert desk.text(asked.rows[0]) == "<cls>Tea is hot. Question:<mask> Answer: hot<sop>"
    rows = {"xsum": "<cls><mask> Content: x<sop>", "seq2seq": "<cls>x<mask><eos><sop>"}
    for name, row in rows.items():
        (asked,) = find_task(name).questions(desk.file({"source": "x"}), task_mask=False, **given)
        assert desk.text(asked.rows[0]) == row


@pytest.mark.parametrize("name", ["xsum", "seq2seq"])
def test_two_items_of_one_idx(desk: Desk, name: str) -> None:
    with pytest.raises(UserError, match=r'line 2: the field "idx" is 4, which names line 1 too'):
        desk.ask(find_task(name), {**ITEM, "idx": 4}, {**ITEM, "idx": 4})


@pytest.mark.slow  # torchmetrics takes seconds to import
def test_rouge(desk: Desk) -> None:
    seq2seq = find_task("seq2seq")
    questions = desk.ask(seq2seq, {**ITEM, "target": "The tea is hot"}, {**ITEM, "target": "茶热"})
    exact = seq2seq.metrics(questions, ["the TEA is hot.", "茶热"])
    assert exact == pytest.approx({"rouge-1": 100.0, "rouge-2": 100.0, "rouge-l": 100.0})
    half = seq2seq.metrics(questions, ["hot is", "热茶"])
    # 2 of 2 and 2 of 4 words; no pair; one word in order. Then all, none, and one of two.
    assert half == pytest.approx(
        {"rouge-1": (200 / 3 + 100) / 2, "rouge-2": 0.0, "rouge-l": (100 / 3 + 50) / 2}, abs=1e-3
    )
    assert seq2seq.lines(questions[:1], ["x"]) == [
        {"idx": 0, "prediction": "x", "reference": "The tea is hot"}
    ]


def test_an_empty_target(desk: Desk) -> None:
    with pytest.raises(UserError, match="line 1: the target is empty"):
        desk.ask(find_task("seq2seq"), {**ITEM, "target": " "}, split=TRAIN)


def test_files_of_lines(desk: Desk) -> None:
    xsum = find_task("xsum")
    source, target = desk.folder / "train.source", desk.folder / "train.target"
    source.write_text("Tea\n\nIce\n")
    target.write_text("a\nb\nc\n")

    def texts() -> list[str]:
        questions = xsum.questions(
            desk.folder,
            split=TRAIN,
            tokenizer=desk.tokenizer,
            asking=Asking(hide_padding=True),
        )
        return [desk.text(question.rows[0]) for question in questions]

    prompt = "<cls><smask> Content:"
    assert texts() == [f"{prompt} Tea<sop> a", f"{prompt}<sop> b", f"{prompt} Ice<sop> c"]
    target.write_text("a\nb\n")
    with pytest.raises(UserError, match=r"train\.source has 3 lines and .*train\.target 2: each"):
        texts()
    target.unlink()
    with pytest.raises(UserError, match=r'train\.source, line 1: there is no field "target"'):
        texts()
    desk.file(ITEM, name="train.jsonl")
    assert len(texts()) == 1
