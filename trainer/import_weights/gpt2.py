"""GPT-2 as transformers has it: what its parameters and its configuration are called.

transformers' `Conv1D` holds the matrix of a layer as [inputs, outputs]; ours is [outputs, inputs].

GPT-2 gives all its tokens logits far below 0. The rows that its embedding lacks get the mean of the
others: rows near 0, whose logit is 0, would take nearly all of the probability.
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
"""The prefix of transformers for all names of a model with a head; files of the model alone,
such as those of OpenAI's weights, lack it."""
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
"""Our names, and those of transformers, read in both directions from the first pair on."""
_UNUSED = re.compile(r"(\.attn\.(masked_)?bias|^lm_head\.weight)$")
"""Masks, and the head, which is the embedding."""


def name_in_transformers(name: str) -> str:
    """Return the name without `PREFIX` of one of our parameters, block positions excepted."""
    for ours, theirs in _NAMES:
        name = name.replace(ours, theirs)
    return name


def is_gpt2(names: Iterable[str]) -> bool:
    """Return whether names of parameters are those of a GPT-2."""
    return any(name.removeprefix(PREFIX) == "wte.weight" for name in names)


def is_transposed(name: str) -> bool:
    """Return whether transformers holds one of our parameters the other way round."""
    return ".layers." in name and name.endswith(".weight") and "layernorm" not in name


def imported(stored: Mapping[str, Tensor], *, vocab_size: int) -> dict[str, Tensor]:
    """Return the weights of a GPT-2 of transformers by our names and in our layout.

    Args:
        stored: by the names of transformers.
        vocab_size: rows of our embedding.
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
    """Return an embedding with the rows of padding that it lacks; of another size, as it is."""
    missing = vocab_size - len(words) if words.dim() else 0
    if not 0 < missing < VOCABULARY_MULTIPLE:
        return words
    mean = words.float().mean(dim=0).to(words.dtype)
    return torch.cat([words, mean.expand(missing, -1)])


def exported(state: Mapping[str, Tensor], *, vocabulary: int) -> dict[str, Tensor]:
    """Return the weights of a causal model as those of `GPT2LMHeadModel`.

    Args:
        state: by our names. Where it has block positions, the first of them, which is added to
            every token of plain text, is added to all positions.
        vocabulary: rows of the embedding that are kept.
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
