"""Reads the figures that EleutherAI's lm-evaluation-harness 0.4.13 was run to make.

`tests/data/harness` contains invented items in the layouts of the published files, a GPT-2 of
transformers with random weights and 96 positions, and its tokenizer. For each task, it also
contains the requests that the harness made of the items, the responses of the model, and the
figures. "windows" are those that the harness's `get_rolling_token_windows` returned.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trainer.import_weights.gpt2 import is_transposed, name_in_transformers
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.tokenizer import TextTokenizer

FOLDER = Path(__file__).parents[2] / "data" / "harness"
POSITIONS = 96
SHAPE = ModelConfig(
    num_layers=2,
    hidden_size=32,
    num_heads=2,
    vocab_size=512,
    max_positions=POSITIONS,
    block_positions=False,
    hidden_dropout=0.0,
    attention_dropout=0.0,
)


@cache
def figures() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / "figures.json").read_text("utf-8"))
    return content


@cache
def gpt2() -> GLM:
    """Return the model to which the harness sent its requests."""
    model = GLM(SHAPE)
    with np.load(FOLDER / "gpt2.npz") as arrays:
        given = {
            name: torch.from_numpy(arrays[name_in_transformers(name)]).float()
            for name in model.state_dict()
        }
    model.load_state_dict(
        {n: w.t() if is_transposed(n) and w.dim() > 1 else w for n, w in given.items()}
    )
    return model.eval().requires_grad_(False)


@cache
def tokenizer() -> TextTokenizer:
    return TextTokenizer(f"hf:{FOLDER / 'tokenizer.json'}")
