"""Converts a GPT-2 between transformers' names and layout and ours.

The `Conv1D` of transformers stores a matrix as [inputs, outputs]; ours is [outputs, inputs].

The logits of all tokens of GPT-2 are far below 0. So the padding rows that its embedding lacks are
set to the mean of the existing rows: rows close to 0 would have logits close to 0, and would get
nearly all of the probability.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from trainer.import_weights.config_json import GPT2
from trainer.model.sizes import VOCABULARY_MULTIPLE, ModelConfig

WORDS, POSITIONS = "word_embeddings.weight", "transformer.position_embeddings.weight"
BLOCK_POSITIONS = "transformer.block_position_embeddings.weight"
PREFIX = "transformer."
"""The prefix of all names of a transformers model with a head; files of a model that has no head,
such as OpenAI's weights, lack it."""
_NAMES = (
    ("transformer.layers.", "h."),
    ("word_embeddings.", "wte."),
    ("transformer.position_embeddings.", "wpe."),
    ("transformer.final_layernorm.", "ln_f."),
    ("post_attention_layernorm.", "ln_2."),
    ("input_layernorm.", "ln_1."),
    ("attention.query_key_value.", "attn.c_attn."),
    ("attention.dense.", "attn.c_proj."),
    ("mlp.dense_h_to_4h.", "mlp.c_fc."),
    ("mlp.dense_4h_to_h.", "mlp.c_proj."),
)
"""Parts of our names and of transformers' names, replaced in this order in both directions."""
_UNUSED = re.compile(r"(\.attn\.(masked_)?bias|^lm_head\.weight)$")
"""Matches the names of masks, and of the head, whose weights are those of the embedding."""


def name_in_transformers(name: str) -> str:
    """Return transformers' name, without `PREFIX`, of any parameter except block positions."""
    for ours, theirs in _NAMES:
        name = name.replace(ours, theirs)
    return name


def is_gpt2(names: Iterable[str]) -> bool:
    """Return whether names of parameters are those of a GPT-2."""
    return any(name.removeprefix(PREFIX) == "wte.weight" for name in names)


def is_transposed(name: str) -> bool:
    """Return whether transformers stores one of our parameters transposed."""
    return ".layers." in name and name.endswith(".weight") and "layernorm" not in name


def imported(stored: Mapping[str, Tensor], *, vocab_size: int) -> dict[str, Tensor]:
    """Return the weights of a GPT-2 of transformers by our names and in our layout.

    Args:
        stored: the weights by the names of transformers.
        vocab_size: the number of rows of our embedding.
    """
    found = {}
    for theirs, value in stored.items():
        if _UNUSED.search(theirs):
            continue
        name = theirs.removeprefix(PREFIX)
        for ours, other in _NAMES:
            name = name.replace(other, ours)
        found[name] = value.t() if is_transposed(name) and value.dim() > 1 else value
    return {**found, WORDS: _filled(found[WORDS], vocab_size)}


def _filled(words: Tensor, vocab_size: int) -> Tensor:
    """Return an embedding with the padding rows that it lacks; unchanged if it lacks more rows."""
    missing = vocab_size - len(words) if words.dim() else 0
    if not 0 < missing < VOCABULARY_MULTIPLE:
        return words
    mean = words.float().mean(dim=0).to(words.dtype)
    return torch.cat([words, mean.expand(missing, -1)])


def exported(state: Mapping[str, Tensor], *, vocabulary: int) -> dict[str, Tensor]:
    """Return the weights of a causal model in the form of `GPT2LMHeadModel`.

    Args:
        state: the weights by our names. If there are block positions, the first of these, which the
            model adds to every token of plain text, is added to all positions.
        vocabulary: the number of embedding rows to keep.
    """
    state = {**state, WORDS: state[WORDS][:vocabulary].clone()}
    blocks = state.pop(BLOCK_POSITIONS, None)
    if blocks is not None:
        positions = state[POSITIONS]
        state[POSITIONS] = (positions.float() + blocks[0].float()).to(positions.dtype)
    return {
        PREFIX + name_in_transformers(name): value.t() if is_transposed(name) else value
        for name, value in state.items()
    }


def configuration(shape: ModelConfig, *, vocabulary: int, eos: int | None) -> dict[str, Any]:
    """Return the config.json of a causal model."""
    return {
        **GPT2.required,
        "model_type": "gpt2",
        **{theirs: getattr(shape, ours) for ours, theirs in GPT2.fields.items()},
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": vocabulary,
        "n_positions": shape.position_rows,
        "resid_pdrop": shape.hidden_dropout,
        "embd_pdrop": shape.hidden_dropout,
        "attn_pdrop": shape.attention_dropout,
        "bos_token_id": eos,
        "eos_token_id": eos,
    }
