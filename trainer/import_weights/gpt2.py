"""GPT-2 as transformers has it: what its parameters and its configuration are called.

transformers' `Conv1D` holds the matrix of a layer as [inputs, outputs]; ours is [outputs, inputs].
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from trainer.model.sizes import ModelConfig, padded_vocabulary

if TYPE_CHECKING:
    from torch import Tensor

WORDS, POSITIONS = "word_embeddings.weight", "transformer.position_embeddings.weight"
BLOCK_POSITIONS = "transformer.block_position_embeddings.weight"
PREFIX = "transformer."
"""What transformers puts in front of all names of a model with a head; files of the model alone,
such as those of OpenAI's weights, lack it."""

_LAYER = re.compile(r"h\.(\d+)\.")
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
_FIELDS = {
    "num_layers": "n_layer",
    "hidden_size": "n_embd",
    "num_heads": "n_head",
    "layernorm_eps": "layer_norm_epsilon",
    "init_std": "initializer_range",
}
_SAME = {
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "tie_word_embeddings": True,
    "add_cross_attention": False,
    "n_inner": None,
}
"""What a GPT-2 must say, or leave out, to be the one that is computed here."""
_COUNTS = ("n_layer", "n_embd", "n_head", "n_positions", "vocab_size")
_DEFAULTS = {"layer_norm_epsilon": 1e-5, "initializer_range": 0.02}


def name_in_transformers(name: str) -> str:
    """Return the name without `PREFIX` of one of our parameters, block positions excepted."""
    for ours, theirs in _NAMES:
        name = name.replace(ours, theirs)
    return name


def is_gpt2(names: Iterable[str]) -> bool:
    """Return whether names of parameters are those of a GPT-2."""
    return any(name.removeprefix(PREFIX) == "wte.weight" for name in names)


def num_layers(names: Iterable[str]) -> int:
    """Return how many layers names of parameters, without `PREFIX`, are of."""
    layers = [int(found[1]) for name in names if (found := _LAYER.match(name))]
    return max(layers, default=0) + 1


def is_transposed(name: str) -> bool:
    """Return whether transformers holds one of our parameters the other way round."""
    return ".layers." in name and name.endswith(".weight") and "layernorm" not in name


def exported(state: "Mapping[str, Tensor]", *, vocabulary: int) -> "dict[str, Tensor]":
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
        **_SAME,
        **{theirs: getattr(shape, ours) for ours, theirs in _FIELDS.items()},
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": vocabulary,
        "n_positions": shape.position_rows,
        "resid_pdrop": shape.hidden_dropout,
        "embd_pdrop": shape.hidden_dropout,
        "attn_pdrop": shape.attention_dropout,
        "bos_token_id": eos,
        "eos_token_id": eos,
    }


def shape_of(content: Mapping[str, Any]) -> ModelConfig:
    """Return the shape that a config.json tells, its vocabulary padded, without dropout.

    Raises:
        ValueError: it does not tell a shape, or the model is computed in another way than here.
    """
    given = {**_SAME, "model_type": None, **_DEFAULTS, **content}
    for name in _COUNTS:
        if type(given.get(name)) is not int:
            raise ValueError(f"{name} is {given.get(name)!a}; expected a whole number")
    if given["activation_function"] == "gelu_pytorch_tanh":  # another name for it
        given["activation_function"] = _SAME["activation_function"]
    if given["n_inner"] == 4 * given["n_embd"]:
        given["n_inner"] = None
    for name, value in _SAME.items():
        if given[name] != value:
            raise ValueError(f"{name} is {given[name]!a}, and a GPT-2 as OpenAI's has {value!r}")
    return ModelConfig(
        **{ours: given[theirs] for ours, theirs in _FIELDS.items()},
        vocab_size=padded_vocabulary(given["vocab_size"]),
        max_positions=given["n_positions"],
        block_positions=False,
        hidden_dropout=0.0,
        attention_dropout=0.0,
    )
