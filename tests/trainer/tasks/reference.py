"""Figures of the reference's tasks, and the model that they were made with."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.trainer.golden import SHARED
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.tasks.heads import Head
from trainer.tasks.task import CLASSIFIER, CLOZE, SPELLED, Asking
from trainer.tokenizer import TextTokenizer
from trainer.weights.published import Weights

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
    form = CLOZE if "--cloze-eval" in given else CLASSIFIER
    return Asking(
        pattern=int(given.get("--pattern-id", 0)),
        length=int(given.get("--seq-length", 96)),
        form=SPELLED if "--multi-token" in given else form,
        candidates="--wsc-negative" in given,
    )


def option(case: Mapping[str, Any], name: str, default: str) -> str:
    options = case["options"].split()
    return options[options.index(name) + 1] if name in options else default


def model() -> GLM:
    shape = ModelConfig(
        num_layers=2,
        hidden_size=32,
        num_heads=4,
        vocab_size=50_304,
        max_positions=256,
        hidden_dropout=0.0,
        attention_dropout=0.0,
    )
    glm = GLM(shape).eval()
    Weights.of([_weights("weight/")], files=[TASKS / "model.npz"]).copy_into(glm)
    return glm


def head(classes: int, *, pool: str) -> Head:
    theirs = _weights("head/")
    ours = {
        name.replace(f"multichoice_head_{classes}.", "output."): weight
        for name, weight in theirs.items()
        if f"_{classes}." in name or "pool" in name
    }
    made = Head(32, classes, pool=pool).eval()
    made.load_state_dict(ours)
    return made


def _weights(folder: str) -> dict[str, torch.Tensor]:
    arrays = np.load(TASKS / "model.npz")
    return {
        name.removeprefix(folder): torch.from_numpy(arrays[name].astype(np.float32))
        for name in arrays.files
        if name.startswith(folder)
    }
