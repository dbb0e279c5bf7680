"""Recognizes folders of unsupported models, and advises what to do instead."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shards.errors import UserError

_CONFIG, _ADAPTER, _NANOGPT = "config.json", "adapter_config.json", "ckpt.pt"
_TYPES = {
    "chatglm": "a ChatGLM",
    "glm4": "a GLM-4",
    "glm4_moe": "a GLM-4",
    "llama": "a Llama",
}
"""Names of models by the model_type in config.json."""
_READ = ("glm", "gpt2", "corpusmill-glm", "None")
"""The supported values of model_type; "None" if there is none."""
READABLE = (
    "Supported are a GLM of THUDM/GLM (2021, not ChatGLM or GLM-4), a GPT-2 like OpenAI's, and "
    "models that trainer.train or trainer.export wrote"
)
NANOGPT_ADVICE = (
    "write its weights as a GPT2LMHeadModel of transformers, the matrices of Linear layers "
    "transposed, and give the folder of save_pretrained"
)


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder with an unsupported model.

    Raises:
        UserError: the folder contains such a model; the message names it.
    """
    config = _object(folder / _CONFIG)
    if kind := _kind(config):
        raise UserError(f"{folder} contains {kind}, which is not supported. {READABLE}.")
    if (folder / _ADAPTER).is_file():
        base = str(_object(folder / _ADAPTER).get("base_model_name_or_path") or "its base model")
        raise UserError(
            f"{folder} contains a LoRA adapter ({_ADAPTER}), not a whole model: merge it into "
            f"{base} with peft (merge_and_unload, then save_pretrained), and give that folder."
        )
    if not config and (folder / _NANOGPT).is_file():
        raise UserError(f"{folder} contains a run of nanoGPT ({_NANOGPT}): {NANOGPT_ADVICE}.")


def _kind(config: Mapping[str, Any]) -> str:
    """Return the name of the unsupported model that a config.json describes, or ""."""
    name = str(config.get("model_type"))
    if name == "glm" and "num_hidden_layers" in config:  # transformers' own, with Llama's names
        return "a GLM-4 or GLM-Edge (model_type glm with num_hidden_layers)"
    return "" if name in _READ else _TYPES.get(name, f"a model of the type {name!a}")


def _object(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file; {} if it cannot be read, which other code reports."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
