"""The command that shows what a task makes of a file."""

import json
from pathlib import Path

import pytest

from tests.trainer.tasks.test_superglue import COPA, RTE
from tests.trainer.tasks.toy import Desk
from trainer.tasks.__main__ import main


def run(desk: Desk, *words: str) -> int:
    return main([*words, "--tokenizer", desk.tokenizer.spec])


def test_questions_are_shown(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    path = desk.file(COPA, {**COPA, "idx": 8, "label": 0})
    assert run(desk, "copa", str(path), "--show", "1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 questions of 4 rows; the longest has ")
    assert lines[2] == "dev-7  label 1"
    assert lines[3].startswith('  ⟨[CLS]⟩"i got wet" or "i stayed dry"? It “rained”, so⟨[MASK]⟩.')
    assert [line[:18] for line in lines[4:]] == ["    →  i got wet⟨<", "    →  i stayed dr"]


def test_words_and_cuts_are_shown(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.file(RTE, name="train.jsonl")
    assert run(desk, "rte", str(desk.folder), "--split", "train", "--length", "22") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("1 questions of 1 rows; the longest has 22 tokens, 1 were cut\n")
    assert "→ ' Yes' or ' No'" in shown


def test_errors_are_one_paragraph(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    path = desk.file({**COPA, "label": "x"})
    assert run(desk, "copa", str(path)) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"trainer.tasks: {path}, line 1: ")
    assert len(message.splitlines()) == 1


def test_the_tasks_of_the_page_are_read(desk: Desk) -> None:
    page = (Path(__file__).parents[3] / "docs" / "finetuning.md").read_text()
    mood = page.split("```json\n")[1].split("```")[0]
    (desk.folder / "mood.json").write_text(mood)
    for number, line in enumerate(page.split("```json\n")[2].split("```")[0].splitlines()):
        (desk.folder / f"{number}.json").write_text(json.dumps(json.loads(line)))
    item = {"review": "x", "label": "positive", "endings": ["a", "b"], "start": "s", "english": "e"}
    path = desk.file({**item, "german": "g", "question": "q", "option_a": "a", "option_b": "b"})
    assert run(desk, str(desk.folder / "mood.json"), str(path), "--form", "spelled") == 0
    assert run(desk, str(desk.folder / "2.json"), str(path), "--split", "train") == 0
    path = desk.file(
        {**item, "label": 1, "question": "q", "option_a": "a", "option_b": "b", "right": 0}
    )
    assert run(desk, str(desk.folder / "0.json"), str(path)) == 0
    assert run(desk, str(desk.folder / "1.json"), str(path)) == 0
