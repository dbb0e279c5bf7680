"""A tokenizer whose tokens are bytes and a few words, so that rows can be read in tests."""

import json
from pathlib import Path
from typing import Any

from tests.golden.corpus_training import tokenizer
from trainer.tasks.rows import Question, Row
from trainer.tasks.task import VALIDATION, Asking, Task
from trainer.tokenizer import TextTokenizer


def make_tokenizer(folder: Path) -> TextTokenizer:
    """Return it; its files go into a folder."""
    tokenizer(folder)
    return TextTokenizer(f"tiktoken:{folder / 'merges.txt'}")


class Desk:
    """Asks tasks about items that a test writes down."""

    def __init__(self, folder: Path, tokenizer: TextTokenizer) -> None:
        self.folder = folder
        self.tokenizer = tokenizer

    def ask(self, task: Task, *items: object, **asked: Any) -> list[Question]:
        """Ask about items, or about one text, which is all of the file."""
        path = self.folder / "items.jsonl"
        lines = (json.dumps(item, ensure_ascii=False) + "\n" for item in items)
        path.write_text(items[0] if isinstance(items[0], str) else "".join(lines))
        return self.ask_file(task, path, **asked)

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


_SHOWN = ("cls", "eos", "mask", "smask", "gmask", "sop", "eop", "sep", "unk")
