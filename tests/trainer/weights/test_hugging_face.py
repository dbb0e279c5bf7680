import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from shards.errors import DamageError, UserError
from shards.records import to_json
from tests.trainer.alone import configured
from tests.trainer.saved import GPT2_SHAPE, causal_logits
from trainer.model.model import GLM
from trainer.opening import Opening
from trainer.start import load_weights
from trainer.trained import find_origin
from trainer.weights.config_json import CONFIG, is_hugging_face, shape_in
from trainer.weights.read import read_weights

GPT2 = {
    "model_type": "gpt2",
    "vocab_size": 300,
    "n_positions": 24,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
}


def put_config(folder: Path, **changes: Any) -> Path:
    (folder / CONFIG).write_text(json.dumps({**GPT2, **changes}))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("alone", [False, True])
def test_what_transformers_saved_gives_the_same_logits(tmp_path: Path, alone: bool) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel  # noqa: PLC0415 - slow

    torch.manual_seed(3)
    theirs = GPT2LMHeadModel(GPT2Config(**GPT2)).eval().requires_grad_(False)
    for parameter in theirs.parameters():
        parameter.add_(torch.randn_like(parameter), alpha=0.1)
    # OpenAI's files have the model without its head: names without a prefix.
    (theirs.transformer if alone else theirs).save_pretrained(tmp_path)
    assert is_hugging_face(tmp_path)
    origin = find_origin(tmp_path, Opening())
    assert (origin.shape, origin.objective) == (GPT2_SHAPE, "causal")
    model = GLM(origin.shape).eval()
    load_weights(tmp_path, model)
    tokens = torch.randint(300, (2, 24))
    with torch.no_grad():
        logits = causal_logits(model, tokens)
        assert (logits[..., :300] - theirs(tokens).logits).abs().max() < 1e-5
    # What fills up the vocabulary is as likely as a token on average.
    middle = logits[..., :300].mean(-1)
    assert (logits[..., 300:] - middle[..., None]).abs().max() < 1e-4


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"activation_function": "relu"}, r"activation_function is 'relu'.* 'gelu_new'"),
        ({"tie_word_embeddings": False}, r"tie_word_embeddings is False"),
        ({"scale_attn_by_inverse_layer_idx": True}, r"scale_attn_by_inverse_layer_idx is True"),
        ({"n_head": 5}, r"does not describe a model .*\(hidden_size 32 is not a multiple"),
        ({"n_layer": "2"}, r"does not describe a model"),
        ({"n_embd": None}, r"does not describe a model"),
    ],
)
def test_what_is_computed_in_another_way(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(UserError, match=complaint):
        shape_in(put_config(tmp_path, **changes))


def test_what_is_computed_in_the_same_way(tmp_path: Path) -> None:
    same = {"activation_function": "gelu_pytorch_tanh", "n_inner": None, "attn_pdrop": 0.1}
    assert shape_in(put_config(tmp_path, **same)) == GPT2_SHAPE
    other = {"layer_norm_epsilon": 1e-6, "initializer_range": 0.01}
    expected = replace(GPT2_SHAPE, layernorm_eps=1e-6, init_std=0.01)
    assert shape_in(put_config(tmp_path, **other)) == expected


def test_a_parameter_that_is_missing(tmp_path: Path) -> None:
    save_file({"wte.weight": torch.zeros(300, 32)}, put_config(tmp_path) / "model.safetensors")
    with pytest.raises(DamageError, match=r"has no transformer\.wpe\.weight, which a GPT-2 has"):
        load_weights(tmp_path, GLM(GPT2_SHAPE))


def test_a_run_that_begins_with_a_folder_has_its_shape(tmp_path: Path) -> None:
    (put_config(tmp_path) / "model.safetensors").touch()
    flags = ["--data", "x", "--batch-size", "8", "--max-steps", "1"]
    begun = configured([*flags, "--init-from", str(tmp_path)])
    assert begun.shape == GPT2_SHAPE
    assert begun.run.length == GPT2_SHAPE.max_positions
    named = configured([*flags, "--init-from", str(tmp_path), "--model", "tiny"])
    assert named.shape != GPT2_SHAPE
    with pytest.raises(UserError, match="say which model to train"):
        configured([*flags, "--init-from", str(tmp_path / "model.safetensors")])


def test_weights_that_are_quantized(tmp_path: Path) -> None:
    save_file(
        {"a": torch.arange(3)},
        put_config(tmp_path, model_type="corpusmill-glm", shape=to_json(GPT2_SHAPE))
        / "model.safetensors",
    )
    with pytest.raises(UserError, match=r"torch\.int64: save the weights without quantization"):
        read_weights(tmp_path, vocab_size=1).read("a")


def test_an_index_names_files_beside_it(tmp_path: Path) -> None:
    index = put_config(tmp_path) / "model.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "../b"}}')
    with pytest.raises(DamageError, match=r"does not name files beside it"):
        load_weights(tmp_path, GLM(GPT2_SHAPE))
