import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from shards.errors import DamageError, UserError
from tests.trainer.saved import GPT2_SHAPE, causal_logits
from trainer.import_weights.config_json import CONFIG
from trainer.import_weights.load import load_weights
from trainer.import_weights.loaded_model import resolve_model
from trainer.load_options import LoadOptions
from trainer.model.model import GLM

GPT2 = {
    "model_type": "gpt2",
    "vocab_size": 300,
    "n_positions": 24,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
}


def put_config(folder: Path) -> Path:
    (folder / CONFIG).write_text(json.dumps(GPT2))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("alone", [False, True])
def test_what_transformers_saved_gives_the_same_logits(tmp_path: Path, alone: bool) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel  # noqa: PLC0415 - slow

    torch.manual_seed(3)
    theirs = (
        GPT2LMHeadModel(GPT2Config(**GPT2, layer_norm_epsilon=0.1)).eval().requires_grad_(False)
    )
    for parameter in theirs.parameters():
        parameter.add_(torch.randn_like(parameter), alpha=0.1)
    # OpenAI's files have the model without its head, and names without a prefix.
    (theirs.transformer if alone else theirs).save_pretrained(tmp_path)
    origin = resolve_model(tmp_path, LoadOptions())
    assert (origin.shape, origin.objective) == (replace(GPT2_SHAPE, layernorm_eps=0.1), "causal")
    model = GLM(origin.shape).eval()
    load_weights(tmp_path, model)
    tokens = torch.randint(300, (2, 24))
    with torch.no_grad():
        logits = causal_logits(model, tokens)
        assert (logits[..., :300] - theirs(tokens).logits).abs().max() < 1e-5
    # On average, a padding row of the vocabulary is as likely as a token.
    middle = logits[..., :300].mean(-1)
    assert (logits[..., 300:] - middle[..., None]).abs().max() < 1e-4


def test_a_parameter_that_is_missing(tmp_path: Path) -> None:
    save_file({"wte.weight": torch.zeros(300, 32)}, put_config(tmp_path) / "model.safetensors")
    with pytest.raises(UserError, match=r"lacks parameters .* and \d+ more\. Copy its files again"):
        load_weights(tmp_path, GLM(GPT2_SHAPE))


def test_an_index_names_files_next_to_it(tmp_path: Path) -> None:
    index = put_config(tmp_path) / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "../b"}}')
    with pytest.raises(DamageError, match=r"does not name files next to it"):
        load_weights(tmp_path, GLM(GPT2_SHAPE))
