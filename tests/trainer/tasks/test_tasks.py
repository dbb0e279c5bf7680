"""Tests the behaviour of tasks that the golden row `tasks` and the refusals do not show."""

import json
from pathlib import Path

import pytest

from shards.errors import UserError
from trainer.tasks.catalogue import find_task
from trainer.tasks.items import read_items
from trainer.tasks.rows import Example
from trainer.tasks.task import TEST, TRAIN, PromptOptions, Task
from trainer.tokenizer import PromptFormat, TextTokenizer


def described(folder: Path, content: str) -> Task:
    (folder / "mood.json").write_text(content)
    return find_task(str(folder / "mood.json"))


def test_a_model_without_task_masks_is_asked_with_mask(
    tmp_path: Path, tokenizer: TextTokenizer
) -> None:
    items = tmp_path / "items.jsonl"
    items.write_text('{"prompt": "x", "source": "x"}\n')
    special = tokenizer.special
    ending = [special[role] for role in ("mask", "eos", "sop")]

    def asked(task: Task) -> list[int]:
        (question,) = task.examples(
            items,
            split=TEST,
            tokenizer=tokenizer,
            options=PromptOptions(),
            prompt_format=PromptFormat(task_mask=False),
        )
        tokens: list[int] = question.rows[0].tokens.tolist()
        return tokens

    # This is how generation then reads a prompt: eos follows.
    context = [special["cls"], *tokenizer.encode("x"), *ending[:2]]
    for task in (find_task("seq2seq"), find_task("prompted")):
        assert asked(task)[: len(context)] == context
        assert asked(task)[-1] == special["sop"]
    own = described(tmp_path, '{"pattern": ["{prompt} [MASK]", "[sMASK]"], "answer": "y"}')
    assert asked(own)[-3:] == ending
    for mark in ("[sMASK]", "[gMASK]"):
        own = described(tmp_path, json.dumps({"pattern": f"{{prompt}} {mark}", "answer": "y"}))
        with pytest.raises(UserError, match=r"the task mood: the pattern '.*' has a blank that"):
            asked(own)


@pytest.mark.slow  # torchmetrics takes seconds to import
def test_rouge() -> None:
    questions = [
        Example(guid="", idx=None, facts={"reference": text}) for text in ("The tea is hot", "茶热")
    ]
    exact, half = (
        find_task("seq2seq").metrics(questions, given)
        for given in (["the TEA is hot.", "茶热"], ["hot is", "热茶"])
    )
    assert exact == pytest.approx({"rouge-1": 100.0, "rouge-2": 100.0, "rouge-l": 100.0})
    # First: 2 of 2 and 2 of 4 words; no pair; one word in order. Then: all, none, and one of two.
    assert half == pytest.approx(
        {"rouge-1": (200 / 3 + 100) / 2, "rouge-2": 0.0, "rouge-l": (100 / 3 + 50) / 2}, abs=1e-3
    )


def test_the_tasks_of_the_page_are_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "finetuning.md").read_text()
    blocks = [block.partition("```")[0] for block in page.split("```json\n")[1:]]
    own = [text for block in blocks for text in block.replace(",\n", ",").splitlines()]
    assert len(own) == 6
    assert all(described(tmp_path, text).description.pattern for text in own)


def test_an_array_holds_the_items_of_json_lines(tmp_path: Path) -> None:
    items = [{"prompt": "a [", "idx": "]"}, {"prompt": 'b "],', "idx": {"c": []}}, {}]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in items))
    (tmp_path / "a.json").write_text(f"\n {json.dumps(items, indent=1)}\n")
    (tmp_path / "none.json").write_text(" [ ] ")
    lines, array = (read_items(tmp_path / name) for name in ("a.jsonl", "a.json"))
    assert [item.fields for item in array] == [item.fields for item in lines] == items
    assert [item.place for item in array] == ["item 1", "item 2", "item 3"]
    assert read_items(tmp_path / "none.json") == []


@pytest.mark.parametrize(
    "content", ["[", "[{},]", "[{} {}]", "[{}] x", "[,]", '[{"a": "\\ud800"}]']
)
def test_an_array_that_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(UserError, match=r"a\.json: this is not valid JSON"):
        read_items(tmp_path / "a.json")


@pytest.mark.parametrize(
    "item",
    [
        {"instruction": "Name it.", "input": "a cat", "output": "Tom", "text": "all of it"},
        {"instruction": "Name it.", "context": "", "response": "Tom", "category": "x"},
        {"content": "a long text", "summary": "short"},
        {"question": "Who?", "answer": "Tom"},
    ],
)
def test_the_task_that_is_suggested_reads_the_items(
    tmp_path: Path, item: dict[str, str], tokenizer: TextTokenizer
) -> None:
    (tmp_path / "train.json").write_text(json.dumps([item]))
    asked = {"split": TRAIN, "tokenizer": tokenizer, "options": PromptOptions()}
    with pytest.raises(UserError, match=r"task\.json with {.*}, and") as why:
        find_task("prompted").examples(tmp_path, **asked)
    suggested = "{" + str(why.value).partition(" with {")[2].partition("}, and give")[0] + "}"
    (question,) = described(tmp_path, suggested).examples(tmp_path, **asked)
    answer = item.get("output") or item.get("response") or item.get("summary") or item["answer"]
    row = question.rows[0]
    assert tokenizer.decode(row.targets[row.loss_mask].tolist()[:-1]).strip() == answer
    assert next(iter(item.values())) in tokenizer.decode(row.tokens.tolist())
