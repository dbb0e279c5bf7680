"""What GPT-2's parameters are called here, by transformers and in llm.c's order.

transformers' `Conv1D` holds a matrix as [inputs, outputs]; ours, as in llm.c, is [outputs, inputs].
"""

import re

WORDS, POSITIONS = "word_embeddings.weight", "transformer.position_embeddings.weight"
BLOCK_POSITIONS = "transformer.block_position_embeddings.weight"
LAST = {
    "transformer.final_layernorm.weight": "ln_f.weight",
    "transformer.final_layernorm.bias": "ln_f.bias",
}
"""By our name that of transformers, without what it puts in front."""
IN_LAYER = {
    "input_layernorm.weight": "ln_1.weight",
    "input_layernorm.bias": "ln_1.bias",
    "attention.query_key_value.weight": "attn.c_attn.weight",
    "attention.query_key_value.bias": "attn.c_attn.bias",
    "attention.dense.weight": "attn.c_proj.weight",
    "attention.dense.bias": "attn.c_proj.bias",
    "post_attention_layernorm.weight": "ln_2.weight",
    "post_attention_layernorm.bias": "ln_2.bias",
    "mlp.dense_h_to_4h.weight": "mlp.c_fc.weight",
    "mlp.dense_h_to_4h.bias": "mlp.c_fc.bias",
    "mlp.dense_4h_to_h.weight": "mlp.c_proj.weight",
    "mlp.dense_4h_to_h.bias": "mlp.c_proj.bias",
}
"""Within a layer, in the order of llm.c's files."""
PREFIX = "transformer."
"""What transformers puts in front of all names of a model with a head; files of the model alone,
such as those of OpenAI's weights, lack it."""
_OUTSIDE = {WORDS: "wte.weight", POSITIONS: "wpe.weight", **LAST}
_LAYER = re.compile(r"transformer\.layers\.(\d+)\.(.+)")


def name_in_transformers(name: str) -> str:
    """Return the name without `PREFIX` of one of our parameters, block positions excepted."""
    if name in _OUTSIDE:
        return _OUTSIDE[name]
    match = _LAYER.fullmatch(name)
    assert match is not None  # a parameter of a GLM
    return f"h.{match[1]}.{IN_LAYER[match[2]]}"


def is_transposed(name: str) -> bool:
    """Return whether transformers holds one of our parameters the other way round."""
    return name.startswith("transformer.layers.") and name.endswith(
        ("query_key_value.weight", "dense.weight", "dense_h_to_4h.weight", "dense_4h_to_h.weight")
    )


def name_in_layer(index: int, name: str) -> str:
    """Return our name of a parameter of a layer, of the names of `IN_LAYER`."""
    return f"transformer.layers.{index}.{name}"
