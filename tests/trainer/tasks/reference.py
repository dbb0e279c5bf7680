"""Figures of the reference's tasks."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.golden import SHARED
from trainer.tasks.description import CLOZE, SPELLED
from trainer.tasks.task import Asking
from trainer.tokenizer import TextTokenizer

TASKS = SHARED / "tasks"
TOKENIZERS = SHARED.parent / "tokenizers"

needs_tasks = pytest.mark.skipif(
    not TASKS.is_dir(), reason="the reference's tasks are not at ../shared/data/golden/tasks"
)


def figures(name: str) -> Any:
    return json.loads((TASKS / name).read_text()) if TASKS.is_dir() else {}


def items(name: str) -> Path:
    return TASKS / "items" / name


def gpt2() -> TextTokenizer:
    return TextTokenizer(f"tiktoken:{TOKENIZERS / 'gpt2-merges.txt'}")


def asking(case: Mapping[str, Any]) -> Asking:
    """What the reference's options ask for."""
    options = case["options"].split()
    given = dict(zip(options, [*options[1:], ""], strict=True))
    return Asking(
        pattern=int(given.get("--pattern-id", 0)),
        length=int(given.get("--seq-length", 96)),
        form=SPELLED if "--multi-token" in given else CLOZE,
        candidates="--wsc-negative" in given,
    )


def option(case: Mapping[str, Any], name: str, default: str) -> str:
    options = case["options"].split()
    return options[options.index(name) + 1] if name in options else default
