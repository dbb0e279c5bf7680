"""Rows of CLUE's tasks, of invented items."""

from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.tasks.toy import Desk
from trainer.tasks.catalogue import find_task
from trainer.tasks.task import SPELLED, TEST, TRAIN

TNEWS = {"sentence": "茶好", "keywords": "茶", "label": "101"}
AFQMC = {"sentence1": "茶好吗", "sentence2": "茶热吗", "label": "1", "id": 44}
WSC = {
    "text": "老李说他热",
    "target": {"span1_text": "老李", "span1_index": 0, "span2_text": "他", "span2_index": 3},
    "label": "true",
}


@pytest.mark.parametrize(
    ("name", "item", "pattern", "row"),
    [
        ("tnews", TNEWS, 0, "<cls>标题：茶好关键词：茶类别：<mask><eos><sop>故事"),
        ("afqmc", AFQMC, 0, "<cls>茶好吗？你是说茶热吗？<mask>。<eos><sop>不是"),
        ("afqmc", AFQMC, 1, "<cls>茶好吗？<mask>，茶热吗<eos><sop>不是"),
        ("cluewsc", WSC, 0, "<cls>#老李#说*他*热代词'*他*'<mask>指#老李#.<eos><sop>不是"),
        (
            "cluewsc",
            WSC,
            1,
            "<cls>在如下的句子中：#老李#说*他*热代词'*他*'<mask>指'#老李#'.<eos><sop>不是",
        ),
    ],
)
def test_rows(desk: Desk, name: str, item: dict[str, Any], pattern: int, row: str) -> None:
    (question,) = desk.ask(find_task(name), item, pattern=pattern, form=SPELLED)
    assert desk.text(question.rows[0]) == row
    assert question.label == 1


def test_tnews_is_spelled_and_has_fifteen_classes(desk: Desk) -> None:
    tnews = find_task("tnews")
    (question,) = desk.ask(tnews, TNEWS, split=TRAIN)
    assert len(question.rows) == 15
    assert desk.answer(question.rows[14]) == "游戏<eop>"
    assert tnews.lines([question], [14]) == [{"id": 0, "label": "116"}]
    with pytest.raises(UserError, match=r'"label" is \'105\', .*100, 101'):
        desk.ask(tnews, {**TNEWS, "label": "105"})


def test_lines_are_clues(desk: Desk) -> None:
    afqmc = find_task("afqmc")
    bare = {key: AFQMC[key] for key in ("sentence1", "sentence2", "id")}
    (question,) = desk.ask(afqmc, bare, split=TEST, form=SPELLED)
    assert afqmc.lines([question], [0]) == [{"id": 44, "label": "0"}]
    assert afqmc.file(desk.folder, "val") == desk.folder / "dev.json"


def test_two_items_of_one_id(desk: Desk) -> None:
    with pytest.raises(UserError, match=r'line 2: the field "id" is 44, which names line 1 too'):
        desk.ask(find_task("afqmc"), AFQMC, AFQMC, form=SPELLED)


def test_a_span_is_found_near_its_index(desk: Desk) -> None:
    target = {**WSC["target"], "span2_index": 1}
    (question,) = desk.ask(find_task("cluewsc"), {**WSC, "target": target}, form=SPELLED)
    assert "说*他*热" in desk.text(question.rows[0])
    with pytest.raises(UserError, match="the text does not hold '她', which should be at char"):
        desk.ask(find_task("cluewsc"), {**WSC, "target": {**target, "span2_text": "她"}})
