"""GLM as THUDM/GLM publishes it for transformers (model_type glm): its config.json.

The names of its parameters are ours, bare in what THUDM/GLM's converter writes, behind `glm.` in
what save_pretrained writes, and behind `module.` in files of DistributedDataParallel.
"""

from collections.abc import Mapping
from typing import Any

from trainer.model.sizes import ModelConfig, padded_vocabulary

MODEL_TYPE = "glm"
PREFIXES = ("module.", "glm.")
_COUNTS = {
    "num_layers": "num_layers",
    "hidden_size": "hidden_size",
    "num_heads": "num_attention_heads",
    "max_positions": "max_sequence_length",
}
"""Our names of what is counted, and those of config.json."""
_DEFAULTS = {
    "attention_scale": 1.0,
    "relative_encoding": False,
    "block_position_encoding": True,
    "initializer_range": 0.02,
    "output_dropout_prob": 0.1,
    "attention_dropout_prob": 0.1,
}
_SAME = {"attention_scale": 1.0, "relative_encoding": False}
"""What it must say, or leave out, to be the one that is computed here."""


def bare_name(name: str) -> str:
    """Return the name of a parameter without the prefixes that other programs put before it."""
    while found := next((prefix for prefix in PREFIXES if name.startswith(prefix)), ""):
        name = name.removeprefix(found)
    return name


def shape_of(content: Mapping[str, Any]) -> ModelConfig:
    """Return the shape that a config.json describes, with its dropout.

    With block positions, its tables have one row more than max_sequence_length, as ours have.

    Raises:
        ValueError: it does not describe a shape, or the model is computed in another way than here.
    """
    given = {**_DEFAULTS, **content}
    for name in (*_COUNTS.values(), "vocab_size"):
        if type(given.get(name)) is not int:
            raise ValueError(f"{name} is {given.get(name)!a}; expected a whole number")
    for name, value in _SAME.items():
        if given[name] != value:
            raise ValueError(f"{name} is {given[name]!a}, and only {value!r} is computed here")
    return ModelConfig(
        **{ours: given[theirs] for ours, theirs in _COUNTS.items()},
        vocab_size=padded_vocabulary(given["vocab_size"]),
        block_positions=bool(given["block_position_encoding"]),
        hidden_dropout=float(given["output_dropout_prob"]),
        attention_dropout=float(given["attention_dropout_prob"]),
        init_std=float(given["initializer_range"]),
    )
