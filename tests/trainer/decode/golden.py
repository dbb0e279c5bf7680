"""Figures of the reference's fine-tuning and generation: ../shared/data/golden/tasks."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.trainer.golden import SHARED
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.tokenizer import TextTokenizer
from trainer.weights.weights import Weights

TASKS = SHARED / "tasks"
SHAPE = ModelConfig(
    num_layers=2,
    hidden_size=32,
    num_heads=4,
    vocab_size=50304,
    max_positions=256,
    hidden_dropout=0.0,
    attention_dropout=0.0,
)


def figures(name: str) -> Any:
    return json.loads((TASKS / name).read_text("utf-8"))


@cache
def model() -> GLM:
    """The reference's model of these figures."""
    arrays = np.load(TASKS / "model.npz")
    weights = {
        name.removeprefix("weight/"): torch.from_numpy(arrays[name].astype(np.float32))
        for name in arrays.files
        if name.startswith("weight/")
    }
    model = GLM(SHAPE)
    parts = {name: [value] for name, value in weights.items()}
    Weights(parts=parts, source=Path("model.npz")).copy_into(model)
    return model.eval().requires_grad_(False)


@cache
def tokenizer() -> TextTokenizer:
    """GPT-2's, with the reference's command tokens."""
    tokenizer = TextTokenizer(f"tiktoken:{SHARED.parent / 'tokenizers' / 'gpt2-merges.txt'}")
    commands = figures("model.json")["command_tokens"]
    roles = {"cls": "ENC", "mask": "MASK", "smask": "sMASK", "gmask": "gMASK"}
    for role in ("eos", "cls", "mask", "smask", "gmask", "sop", "eop"):
        assert tokenizer.special[role] == commands[roles.get(role, role)]
    return tokenizer
