"""What is cut where a row is too long."""

from pathlib import Path

import pytest

from shards.errors import UserError
from tests.trainer.tasks.toy import Desk
from trainer.tasks.catalogue import find_task
from trainer.tasks.cloze import MASK, Pattern, cut, fill
from trainer.tasks.items import Item
from trainer.tasks.rows import BlankRows
from trainer.tasks.task import CLOZE, VALIDATION, Asked
from trainer.tokenizer import TextTokenizer

ITEM = Item(fields={}, path=Path("items.jsonl"), line=3)


def asked(tokenizer: TextTokenizer, length: int) -> Asked:
    return Asked(
        tokenizer=tokenizer,
        split=VALIDATION,
        form=CLOZE,
        pattern=0,
        length=length,
        candidates=False,
        source_length=8,
        target_length=8,
        cut_targets=False,
        hide_padding=False,
        is_causal=False,
        task_mask=True,
    )


@pytest.mark.parametrize(
    ("pattern", "length", "shown"),
    [
        (Pattern((cut("abcd"), "ef", MASK)), 10, "<cls>abcdef<mask><eos><sop>"),
        (Pattern((cut("abcd"), "ef", MASK)), 9, "<cls>abcef<mask><eos><sop>"),
        # The last that may be cut, until nothing of it is left; then the one before.
        (Pattern((cut("ab"), cut("cd"), "ef", MASK)), 9, "<cls>abcef<mask><eos><sop>"),
        (Pattern((cut("ab"), cut("cd"), "ef", MASK)), 7, "<cls>aef<mask><eos><sop>"),
        # The longer group first, the second where they are as long.
        (Pattern((cut("abcd"),), (MASK, cut("ef"))), 9, "<cls>abc<mask>ef<eos><sop>"),
        (Pattern((cut("ab"),), (MASK, cut("ef"))), 7, "<cls>ab<mask>e<eos><sop>"),
        (Pattern((cut("ab"),), (MASK, cut("ef"))), 6, "<cls>a<mask>e<eos><sop>"),
    ],
)
def test_what_is_cut(desk: Desk, pattern: Pattern, length: int, shown: str) -> None:
    blank, was_cut = fill(pattern, [], asked(desk.tokenizer, length), item=ITEM)
    row = blank.row()
    assert desk.text(row) == shown
    assert len(row) <= length
    assert was_cut == (len(row) < 4 + sum(len(p.text) for g in pattern.groups for p in g))


def test_an_answer_is_never_cut(desk: Desk) -> None:
    answer = [*desk.tokenizer.encode("xyz"), desk.tokenizer.special["eop"]]
    blank, was_cut = fill(Pattern((cut("abc"), MASK)), answer, asked(desk.tokenizer, 7), item=ITEM)
    row = blank.row()
    assert (desk.text(row), desk.answer(row)) == ("<cls><mask><eos><sop>xyz", "xyz<eop>")
    assert was_cut
    with pytest.raises(UserError, match=r"^items\.jsonl, line 3: .* has 10 tokens, --length is 6,"):
        fill(Pattern((cut("abc"), MASK)), answer, asked(desk.tokenizer, 6), item=ITEM)


def test_white_space_alone_has_no_tokens(desk: Desk) -> None:
    blank, _ = fill(Pattern((" ", "a ", MASK)), [], asked(desk.tokenizer, 9), item=ITEM)
    assert desk.text(blank.row()) == "<cls>a <mask><eos><sop>"


def test_the_longer_choice_leaves_less_to_the_premise(desk: Desk) -> None:
    item = {"premise": "abcdefgh.", "choice1": "x.", "choice2": "xxxx.", "question": "cause"}
    (question,) = desk.ask(find_task("copa"), {**item, "idx": 0, "label": 0}, length=31)
    premises = [desk.text(row).split("? ")[1].split(" because")[0] for row in question.rows]
    assert premises == ["abcdefgh", "abcdef"]
    assert question.num_shortened == 1


def test_rows_are_made_when_they_are_asked_for(desk: Desk) -> None:
    item = {"premise": "a.", "choice1": "b.", "choice2": "c.", "question": "cause"}
    (question,) = desk.ask(find_task("copa"), {**item, "idx": 0, "label": 0})
    rows = question.rows
    assert isinstance(rows, BlankRows)
    assert len(rows) == len(list(rows)) == 2
    assert [desk.answer(row) for row in rows[1:]] == [desk.answer(rows[-1])] == [" c<eop>"]
