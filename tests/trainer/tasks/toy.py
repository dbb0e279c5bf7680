"""A tokenizer whose tokens are bytes and a few words, so that rows can be read in tests."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainer.tasks.rows import Question, Row
from trainer.tasks.task import VALIDATION, Asking, Task
from trainer.tokenizer import TextTokenizer

WORDS = (
    " Yes",
    " False",
    " True",
    " No",
    " Maybe",
    " true",
    " false",
    " great",
    " awful",
    " because",
    " so",
    " neither",
)


def make_tokenizer(folder: Path) -> TextTokenizer:
    """Return it; its files go into a folder."""
    signs = _signs()
    merges: list[str] = []
    tokens = list(signs.values())
    for word in WORDS:
        letters = [signs[byte] for byte in word.encode()]
        for size in range(2, len(letters) + 1):
            pair = ("".join(letters[: size - 1]), letters[size - 1])
            if " ".join(pair) not in merges:
                merges.append(" ".join(pair))
                tokens.append("".join(pair))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    names = {token: number for number, token in enumerate([*tokens, "<|endoftext|>"])}
    (folder / "vocab.json").write_text(json.dumps(names))
    return TextTokenizer(f"tiktoken:{folder / 'merges.txt'}")


def _signs() -> dict[int, str]:
    """Return the characters that GPT-2's files write bytes with, in the order of its ids."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {
        byte: chr(256 + number) for number, byte in enumerate(others)
    }


class Desk:
    """Asks tasks about items that a test writes down."""

    def __init__(self, folder: Path, tokenizer: TextTokenizer) -> None:
        self.folder = folder
        self.tokenizer = tokenizer

    def file(self, *items: object, name: str = "items.jsonl") -> Path:
        path = self.folder / name
        path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items))
        return path

    def ask(self, task: Task, *items: object, **asked: Any) -> list[Question]:
        return self.ask_file(task, self.file(*items), **asked)

    def ask_file(
        self,
        task: Task,
        path: Path,
        *,
        split: str = VALIDATION,
        task_mask: bool = True,
        **flags: Any,
    ) -> list[Question]:
        return task.questions(
            path,
            split=split,
            tokenizer=self.tokenizer,
            asking=Asking(**flags),
            task_mask=task_mask,
        )

    def text(self, row: Row) -> str:
        """A row's tokens, its command tokens in brackets of their own."""
        names = {self.tokenizer.special[role]: role for role in _SHOWN}
        shown, plain = "", []
        for token in [*row.tokens.tolist(), -1]:
            if token >= 0 and token not in names:
                plain.append(token)
                continue
            shown += self.tokenizer.decode(plain)
            shown += f"<{names[token]}>" if token in names else ""
            plain = []
        return shown

    def answer(self, row: Row) -> str:
        """What a row is to predict."""
        return self.text(replace(row, tokens=row.targets[row.loss_mask]))


_SHOWN = ("cls", "eos", "mask", "smask", "gmask", "sop", "eop", "sep", "unk")
