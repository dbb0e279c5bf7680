"""Rows of sources and targets, of invented items."""

import pytest

from shards.errors import UserError
from tests.trainer.tasks.toy import Desk
from trainer.tasks.catalogue import find_task
from trainer.tasks.task import TEST, TRAIN, Asking

ITEM = {"source": ' "Tea" is hot. ', "target": "tea "}


def test_a_source_is_padded_and_its_target_follows(desk: Desk) -> None:
    (question,) = desk.ask(find_task("seq2seq"), ITEM, split=TRAIN, source_length=16)
    (row,) = question.rows
    assert desk.text(row) == '<cls>"Tea" is hot.<smask><eos><sop> tea'
    assert desk.answer(row) == " tea<eop>"
    assert row.position_ids is not None
    assert question.facts == {"reference": "tea"}
    (padded,) = desk.ask(find_task("seq2seq"), ITEM, split=TRAIN, source_length=24)
    (hidden,) = desk.ask(
        find_task("seq2seq"), ITEM, split=TRAIN, source_length=24, hide_padding=True
    )
    assert (padded.rows[0].sep, hidden.rows[0].sep) == (24, row.sep)
    assert padded.rows[0].position_ids[:, 24:].tolist() == [[14] * 4, [1, 2, 3, 4]]


def test_a_long_source_is_cut_at_its_start(desk: Desk) -> None:
    (question,) = desk.ask(find_task("seq2seq"), ITEM, split=TEST, source_length=8)
    assert desk.text(question.rows[0]) == "<cls> hot.<smask><eos><sop>"
    assert question.num_shortened == 1


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


def test_without_task_masks_the_blank_is_mask(desk: Desk) -> None:
    (asked,) = find_task("seq2seq").questions(
        desk.file({"source": "x"}),
        task_mask=False,
        split=TEST,
        tokenizer=desk.tokenizer,
        asking=Asking(hide_padding=True),
    )
    assert desk.text(asked.rows[0]) == "<cls>x<mask><eos><sop>"


def test_two_items_of_one_idx(desk: Desk) -> None:
    with pytest.raises(UserError, match=r'line 2: the field "idx" is 4, which names line 1 too'):
        desk.ask(find_task("seq2seq"), {**ITEM, "idx": 4}, {**ITEM, "idx": 4})


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
    seq2seq = find_task("seq2seq")
    source, target = desk.folder / "train.source", desk.folder / "train.target"
    source.write_text("Tea\n\nIce\n")
    target.write_text("a\nb\nc\n")

    def texts() -> list[str]:
        questions = seq2seq.questions(
            desk.folder,
            split=TRAIN,
            tokenizer=desk.tokenizer,
            asking=Asking(hide_padding=True),
        )
        return [desk.text(question.rows[0]) for question in questions]

    end = "<smask><eos><sop>"
    assert texts() == [f"<cls>Tea{end} a", f"<cls>{end} b", f"<cls>Ice{end} c"]
    target.write_text("a\nb\n")
    with pytest.raises(UserError, match=r"train\.source has 3 lines and .*train\.target 2: each"):
        texts()
    target.unlink()
    with pytest.raises(UserError, match=r'train\.source, line 1: there is no field "target"'):
        texts()
    desk.file(ITEM, name="train.jsonl")
    assert len(texts()) == 1
