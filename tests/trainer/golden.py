"""Reads the figures that the reference implementation (THUDM/GLM 4f61ed7) was run to make.

The figures of tasks, fine-tuning and generated texts are not in the repository.
`tests/data/glm_tiny.npz` is a part of `../shared/data/golden/model_tiny.npz`: all weights of a
model of three layers, one sample of the case `bert`, and two samples of the case `edges` (no tokens
before `sep`, and all tokens before `sep`).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.tasks.catalogue import find_task
from trainer.tasks.description import CLOZE, SPELLED
from trainer.tasks.rows import Example
from trainer.tasks.task import TRAIN, VALIDATION, PromptOptions
from trainer.tokenizer import TextTokenizer

SHAPE = ModelConfig(
    num_layers=3,
    hidden_size=64,
    num_heads=4,
    vocab_size=256,
    max_positions=64,
    hidden_dropout=0.0,
    attention_dropout=0.0,
)
EXTRACT = Path(__file__).parents[1] / "data" / "glm_tiny.npz"
SHARED = Path(__file__).parents[2] / ".." / "shared" / "data" / "golden"

TASKS = SHARED / "tasks"
TOKENIZERS = SHARED.parent / "tokenizers"
TASKS_SHAPE = replace(SHAPE, num_layers=2, hidden_size=32, vocab_size=50304, max_positions=256)
"""The configuration of the model that made the figures of tasks."""

TOLERANCE = 5e-5
"""The tolerance for logits with a standard deviation of 4; a wrong formula moves them by at least
1e-4."""

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the reference's figures are not at ../shared/data/golden"
)


class Figures:
    """A file of figures."""

    def __init__(self, path: Path) -> None:
        self._arrays: Any = np.load(path)
        self.names: list[str] = self._arrays.files

    def tensor(self, name: str) -> Tensor:
        array = self._arrays[name]
        return torch.from_numpy(array.astype(np.int64) if array.dtype == np.int16 else array)

    def weights(self) -> dict[str, Tensor]:
        return self.under("weight/")

    def under(self, folder: str) -> dict[str, Tensor]:
        return {
            name.removeprefix(folder): self.tensor(name)
            for name in self.names
            if name.startswith(folder)
        }

    def batch(self, case: str) -> dict[str, Tensor]:
        """Return a case as a loader would give it; a mask that hides nothing is left out."""
        figures = self.under(f"case/{case}/")
        batch = {
            "tokens": figures["text"],
            "targets": figures["target"],
            "loss_mask": figures["loss_mask"].bool(),
            "position_ids": figures["position_id"],
        }
        if figures["attention_mask"].dim() == 1:
            batch["sep"] = figures["attention_mask"]
        return batch


def reference_model(make: Callable[[ModelConfig], GLM] = GLM, **weights: Tensor) -> GLM:
    """Return the reference's tiny model with these weights, by default those of the extract."""
    model = make(SHAPE)
    model.load_state_dict(weights or Figures(EXTRACT).weights())
    return model


def logits_of(model: GLM, batch: dict[str, Tensor]) -> Tensor:
    logits: Tensor = model(batch["tokens"], batch["position_ids"], sep=batch["sep"])
    return logits


def figures(name: str) -> Any:
    """Return the figures of tasks in a file, or {} if this machine does not have them."""
    return json.loads((TASKS / name).read_text("utf-8")) if TASKS.is_dir() else {}


def items(name: str) -> Path:
    return TASKS / "items" / name


def tasks_model(*, smoothing: float = 0.0) -> GLM:
    """Return the model that made the figures of tasks."""
    model = GLM(TASKS_SHAPE, smoothing=smoothing)
    arrays = np.load(TASKS / "model.npz")
    weights = (name for name in arrays.files if name.startswith("weight/"))
    model.load_state_dict(
        {
            name.removeprefix("weight/"): torch.from_numpy(arrays[name].astype("f4"))
            for name in weights
        }
    )
    return model


@cache
def writing_model() -> GLM:
    """Return the model that made the figures of tasks, with training switched off."""
    return tasks_model().eval().requires_grad_(False)


@cache
def gpt2() -> TextTokenizer:
    """Return GPT-2's tokenizer, after checking the reference's command tokens."""
    tokenizer = TextTokenizer(f"tiktoken:{TOKENIZERS / 'gpt2-merges.txt'}")
    commands = figures("model.json")["command_tokens"]
    roles = {"cls": "ENC", "mask": "MASK", "smask": "sMASK", "gmask": "gMASK"}
    for role in ("eos", "cls", "mask", "smask", "gmask", "sop", "eop"):
        assert tokenizer.special[role] == commands[roles.get(role, role)]
    return tokenizer


def option(case: Mapping[str, Any], name: str, default: str) -> str:
    """Return the value of a flag in the command line of the reference for a case."""
    options = case["options"].split()
    return options[options.index(name) + 1] if name in options else default


def questions_of(case: Mapping[str, Any], path: Path | None = None) -> list[Example]:
    """Return the examples of a case, or of a given file, with the reference's options."""
    options = case["options"].split()
    return find_task(case["task"]).examples(
        path or items(f"{case['items']}.jsonl"),
        split=TRAIN if case.get("split") == "train" else VALIDATION,
        tokenizer=gpt2(),
        options=PromptOptions(
            pattern=int(option(case, "--pattern-id", "0")),
            length=int(option(case, "--seq-length", "96")),
            form=SPELLED if "--multi-token" in options else CLOZE,
            candidates="--wsc-negative" in options,
        ),
    )
