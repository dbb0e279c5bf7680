"""Rows and texts equal those of the reference (../shared/data/golden/tasks)."""

from pathlib import Path
from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.golden import TOKENIZERS, figures, gpt2, items, needs_shared, questions_of
from trainer.tasks.catalogue import TASKS, find_task
from trainer.tasks.rows import Example, Row
from trainer.tasks.task import PromptOptions
from trainer.tokenizer import TextTokenizer

pytestmark = needs_shared

ENCODINGS = {
    name: case
    for name, case in figures("encodings.json").items()
    if "--cloze-eval" in case["options"] and case["task"] in TASKS
}
SEQUENCES = {
    name: case
    for name, case in figures("seq2seq.json").get("cases", {}).items()
    if case["task"] in TASKS
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_rows_are_the_references(name: str, tmp_path: Path) -> None:
    case = ENCODINGS[name]
    lines = items(f"{case['items']}.jsonl").read_text().splitlines()
    made, too_long = {}, 0
    for line in lines:  # one by one, because some are too long, which is an error of the whole file
        (tmp_path / "one.jsonl").write_text(line)
        try:
            asked = questions_of(case, tmp_path / "one.jsonl")
            made |= {question.guid: question for question in asked}
        except UserError as error:
            too_long += "--length" in str(error)
    assert too_long == sum("error" in sample for sample in case["samples"])
    for sample in case["samples"]:
        if "error" not in sample:
            _compare(made[sample["uid"]], sample, has_classes=case["labels"] == ["False", "True"])
    if not too_long:
        assert sorted(made) == sorted(case["guids"])
        assert sum(question.num_cut for question in made.values()) == case["truncated"]


def _compare(question: Example, sample: dict[str, Any], *, has_classes: bool) -> None:
    facts = question.facts or {}
    is_named = has_classes and facts.get("has_candidates") and question.guid.startswith("dev")
    assert (facts["is_true"] if is_named else question.label) == sample["label"]
    rows = sample.get("choices", [sample])
    assert len(question.rows) == len(rows)
    for row, expected in zip(question.rows, rows, strict=True):
        _compare_rows(row, expected, has_words=bool(question.words))
    if question.words:
        assert list(question.words) == sample["target"]


def _compare_rows(row: Row, expected: dict[str, Any], *, has_words: bool) -> None:
    assert row.tokens.tolist() == expected["text"]
    assert row.position_ids.tolist() == expected["position"]
    assert row.sep == expected["mask"]
    if "logit_mask" in expected and not has_words:
        assert row.loss_mask.tolist() == list(map(bool, expected["logit_mask"]))
        assert row.targets[row.loss_mask].tolist() == _targets(expected)


def _targets(expected: dict[str, Any]) -> list[int]:
    pairs = zip(expected["target"], expected["logit_mask"], strict=True)
    return [target for target, is_requested in pairs if is_requested]


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_the_references(name: str) -> None:
    case = SEQUENCES[name]
    is_chinese = case["tokenizer"] != "gpt2"
    chinese = f"sentencepiece:{TOKENIZERS / 'cog-pretrain.model'}"
    questions = find_task(case["task"]).examples(
        items("seq2seq.jsonl"),
        split=case["split"],
        tokenizer=TextTokenizer(chinese) if is_chinese else gpt2(),
        options=PromptOptions(source_length=64, target_length=16, cut_targets=True),
    )
    for question, sample in zip(questions, case["samples"], strict=True):
        (row,) = question.rows
        size = len(row)
        assert question.guid == sample["uid"]
        assert row.tokens.tolist() == sample["text"][:size]
        assert row.position_ids.tolist() == [line[:size] for line in sample["position"]]
        assert row.sep == sample["mask"]
        if "target" in sample:
            assert row.loss_mask.tolist() == list(map(bool, sample["logit_mask"][:size]))
            assert row.targets[row.loss_mask].tolist() == _targets(sample)
    assert [(question.facts or {})["reference"] for question in questions] == case["refs"]


def test_words_of_chinese_tasks(tmp_path: Path) -> None:
    """Each of AFQMC's words is one token of the reference's tokenizer; TNEWS's are more."""
    tokenizer = TextTokenizer(f"sentencepiece:{TOKENIZERS / 'cog-pretrain.model'}")
    path = tmp_path / "dev.json"
    path.write_text(
        '{"sentence1": "茶", "sentence2": "水", "sentence": "茶", "keywords": "水", "label": "0", '
        '"id": 0}'
    )
    afqmc = find_task("afqmc")
    (question,) = afqmc.examples(path, split="test", tokenizer=tokenizer, options=PromptOptions())
    assert question.words == (2350, 570)
    path.write_text(path.read_text().replace('"0"', '"100"'))
    with pytest.raises(UserError, match=r"the word '居家' has 2 tokens .* Take --form spelled"):
        find_task("tnews").examples(
            path, split="test", tokenizer=tokenizer, options=PromptOptions(form="cloze")
        )
