"""Figures of EleutherAI's lm-evaluation-harness 0.4.13, which was run to make them.

`tests/data/harness` holds invented items in the layouts of the published files, a GPT-2 of
transformers with random weights and 96 positions, its tokenizer, and of each task the requests that
the harness made of the items, what the model answered, and the figures. "windows" are those of its
`get_rolling_token_windows`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

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
_TABLES = {"wte": "word_embeddings", "wpe": "transformer.position_embeddings"}
_PARTS = {
    "ln_1": "input_layernorm",
    "attn.c_attn": "attention.query_key_value",
    "attn.c_proj": "attention.dense",
    "ln_2": "post_attention_layernorm",
    "mlp.c_fc": "mlp.dense_h_to_4h",
    "mlp.c_proj": "mlp.dense_4h_to_h",
}


@cache
def figures() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / "figures.json").read_text("utf-8"))
    return content


@cache
def gpt2() -> GLM:
    """The model that the harness asked."""
    model = GLM(SHAPE)
    with np.load(FOLDER / "gpt2.npz") as arrays:
        weights = {_own_name(name): torch.from_numpy(arrays[name]).float() for name in arrays.files}
    # transformers keeps matrices as inputs x outputs.
    is_linear = {name: ".layers." in name and weights[name].dim() == 2 for name in weights}
    model.load_state_dict(
        {name: weight.t() if is_linear[name] else weight for name, weight in weights.items()}
    )
    return model.eval().requires_grad_(False)


@cache
def tokenizer() -> TextTokenizer:
    return TextTokenizer(f"hf:{FOLDER / 'tokenizer.json'}")


def _own_name(name: str) -> str:
    head, _, kind = name.rpartition(".")
    if head in _TABLES:
        return f"{_TABLES[head]}.{kind}"
    if head == "ln_f":
        return f"transformer.final_layernorm.{kind}"
    _, layer, part = head.split(".", 2)
    return f"transformer.layers.{layer}.{_PARTS[part]}.{kind}"
