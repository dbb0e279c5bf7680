"""Files that are no files of items."""

from pathlib import Path

import pytest

from shards.errors import UserError
from trainer.tasks.catalogue import find_task
from trainer.tasks.items import Item, names_of, read_items
from trainer.tasks.task import Asking
from trainer.tokenizer import TextTokenizer


def test_blank_lines_count_but_hold_nothing(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"a": "\xe2\x80\xa8"}\n')
    assert [(item.line, item.fields["a"]) for item in read_items(path)] == [(1, 1), (4, "\u2028")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1}\n{"a": \n', r"line 2: this is not valid JSON"),
        (b"[1]\n", r"line 1: this is \[1\]\. Expected an object"),
        (b'{"a": "\xff"}', r"is not UTF-8: its byte 7 is 0xff"),
        (b'{"a": 1}\n{"a": ["\\uD800"]}', r"line 2: .*\(\\ud800 in it is half a character"),
        (b'{"\\udC00\\uD800": 1}', r"line 1: .*\(\\udc00 in it is half"),
        (b'{"a": 1, "a": 2}', r"line 1: .*the key 'a' stands there twice, with 1, 2"),
    ],
)
def test_wrong_files(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "items.jsonl").write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_items(tmp_path / "items.jsonl")


def test_whole_characters_may_be_escaped(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text('{"a": "\\ud83d\\ude00 \\\\ud800"}')
    assert read_items(path)[0].fields == {"a": "\U0001f600 \\ud800"}


def items(*names: dict[str, object]) -> list[Item]:
    lines = enumerate(names, start=1)
    return [Item(fields=fields, path=Path("items.jsonl"), line=line) for line, fields in lines]


def test_names_are_what_items_call_themselves_or_their_numbers() -> None:
    given = items({"idx": 7, "id": "x"}, {"id": "x"}, {"id": None}, {"idx": ["a", 1]})
    assert names_of(given) == [7, "x", 2, ["a", 1]]


@pytest.mark.parametrize(
    ("several", "message"),
    [
        ([{"idx": 7}, {}, {"idx": 7}], r'line 3: the field "idx" is 7, which names line 1 too'),
        ([{"idx": "a"}, {"id": "a"}], r'line 2: the field "id" is \'a\', which names line 1 too'),
        ([{"idx": 1}, {}], r"line 2: without a name its number is 1, which names line 1 too"),
    ],
)
def test_a_name_of_two_items(several: list[dict[str, object]], message: str) -> None:
    with pytest.raises(UserError, match=rf"items\.jsonl, {message}"):
        names_of(items(*several))


def test_no_file(tmp_path: Path, toy_tokenizer: TextTokenizer) -> None:
    with pytest.raises(UserError, match=r"val\.jsonl cannot be read: No such file"):
        find_task("copa").questions(tmp_path, split="val", tokenizer=toy_tokenizer, asking=Asking())


def test_an_empty_file(tmp_path: Path, toy_tokenizer: TextTokenizer) -> None:
    (tmp_path / "val.jsonl").write_text("\n")
    with pytest.raises(UserError, match=r"val\.jsonl holds nothing to ask for the task copa"):
        find_task("copa").questions(tmp_path, split="val", tokenizer=toy_tokenizer, asking=Asking())


def test_labels_are_compared_as_json_has_them() -> None:
    def label(value: object, labels: list[object]) -> int | None:
        item = Item(fields={"label": value}, path=Path("x"), line=1)
        return item.label(labels, is_needed=True)

    assert label(True, ["false", "true"]) == 1
    assert label("False", ["false", "true"]) == 0
    assert label("108", ["100", "108"]) == 1
    assert label(1, [0, 1]) == 1
    assert label("us", ["US", "us"]) == 1
    with pytest.raises(UserError, match=r"\"label\" is 'Us', which the task does not know"):
        label("Us", ["US", "us"])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"pattern": 3}, "--pattern 3: the task copa has 3, numbered from 0 on"),
        ({"candidates": True}, "--candidates: the task copa has no use for it"),
        ({"target_length": 3}, "--target-length: the task copa has no use"),
    ],
)
def test_flags_of_other_tasks(
    tmp_path: Path, toy_tokenizer: TextTokenizer, flags: dict[str, int], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        find_task("copa").questions(
            tmp_path,
            split="val",
            tokenizer=toy_tokenizer,
            asking=Asking(**flags),  # type: ignore[arg-type]
        )


def test_no_task() -> None:
    with pytest.raises(
        UserError, match=r"--task copy: there is no such task.* .*ive one of afqmc, "
    ):
        find_task("copy")
