"""Models in every published form are compared with the same weights in the first form."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from shards.errors import UserError
from tests.trainer.golden import EXTRACT, SHAPE, Figures, logits_of, reference_model
from tests.trainer.import_weights.forms import FORMS, Saved
from tests.trainer.saved import GPT2_SHAPE, TOKENIZER, causal_logits, random_model
from trainer.import_weights import gpt2
from trainer.import_weights.config_json import shape_in
from trainer.import_weights.load import load_weights
from trainer.import_weights.loaded_model import find_tokenizer, load_model, resolve_model
from trainer.load_options import LoadOptions
from trainer.model.model import GLM
from trainer.model.sizes import SIZES

GLM_CONFIG: dict[str, Any] = {
    "model_type": "glm",
    "architectures": ["GLMModel"],
    "num_layers": 3,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "vocab_size": 256,
    "max_sequence_length": 64,
    "block_position_encoding": True,
    "attention_scale": 1.0,
    "relative_encoding": False,
    "output_dropout_prob": 0.0,
    "attention_dropout_prob": 0.0,
}
"""The configuration of the reference's tiny model in THUDM/GLM's format."""
PREFIXES = ("", "glm.", "module.", "module.glm.")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_glm_gives_the_logits_of_the_reference(tmp_path: Path, form: str, prefix: str) -> None:
    weights = Figures(EXTRACT).weights()
    folder = Saved(form, prefix).write(tmp_path, weights, GLM_CONFIG)
    origin = resolve_model(folder, LoadOptions())
    assert (origin.shape, origin.objective) == (SHAPE, "glm")
    model = GLM(origin.shape)
    load_weights(folder, model)
    batch = Figures(EXTRACT).batch("edges")
    with torch.no_grad():
        assert torch.equal(logits_of(model, batch), logits_of(reference_model(), batch))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("prefix", ["", "transformer.", "module.transformer."])
def test_a_gpt2_gives_its_logits(tmp_path: Path, form: str, prefix: str) -> None:
    before = random_model(GPT2_SHAPE)
    state = gpt2.exported(before.state_dict(), vocabulary=300)
    bare = {name.removeprefix(gpt2.PREFIX): w.contiguous() for name, w in state.items()}
    masks = {"h.0.attn.bias": torch.ones(1, 1, 24, 24).tril().to(torch.uint8)}
    config = gpt2.configuration(GPT2_SHAPE, vocabulary=300, eos=None)
    folder = Saved(form, prefix).write(tmp_path, {**bare, **masks}, config)
    origin = resolve_model(folder, LoadOptions())
    assert (origin.shape, origin.objective) == (GPT2_SHAPE, "causal")
    model = GLM(origin.shape).eval()
    load_weights(folder, model)
    tokens = torch.randint(300, (2, 24))
    with torch.no_grad():
        found, wanted = causal_logits(model, tokens), causal_logits(before, tokens)
        assert torch.equal(found[..., :300], wanted[..., :300])
        # When a model is used, rows that only fill up the embedding have no probability.
        used = causal_logits(load_model(origin, LoadOptions(device="cpu", dtype="fp32")), tokens)
        assert torch.equal(used.softmax(-1)[..., :300], wanted[..., :300].softmax(-1))
        assert not used.softmax(-1)[..., 300:].any()


def test_a_file_is_described_by_the_config_beside_it(tmp_path: Path) -> None:
    Saved("bin", "").write(tmp_path, Figures(EXTRACT).weights(), GLM_CONFIG)
    origin = resolve_model(tmp_path / "pytorch_model.bin", LoadOptions())
    assert origin.shape == SHAPE
    load_weights(origin.path, GLM(origin.shape))


def test_weights_without_a_config_need_the_name_of_their_model(tmp_path: Path) -> None:
    Saved("bin", "").write(tmp_path, Figures(EXTRACT).weights(), GLM_CONFIG)
    (tmp_path / "config.json").rename(tmp_path / "shape.json")
    with pytest.raises(UserError, match=r"give its model: --model NAME, .*glm-515m"):
        resolve_model(tmp_path, LoadOptions())
    load_weights(tmp_path, GLM(SHAPE))


@pytest.mark.parametrize("name", ["glm-large-chinese", "glm-515m", "glm-10b"])
def test_the_shapes_that_are_published(tmp_path: Path, name: str) -> None:
    shape = SIZES[name]
    counts = {
        "num_layers": shape.num_layers,
        "hidden_size": shape.hidden_size,
        "num_attention_heads": shape.num_heads,
        "vocab_size": shape.vocab_size,
        "max_sequence_length": shape.max_positions,
    }
    dropout = {"output_dropout_prob": 0.1, "attention_dropout_prob": 0.1}
    (tmp_path / "config.json").write_text(json.dumps({**GLM_CONFIG, **counts, **dropout}))
    assert shape_in(tmp_path) == shape


def test_without_block_positions_there_is_no_row_more(tmp_path: Path) -> None:
    config = {**GLM_CONFIG, "block_position_encoding": False}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert shape_in(tmp_path) == replace(SHAPE, block_positions=False)


def test_the_tokenizer_beside_a_glm_is_found(tmp_path: Path) -> None:
    config = {**GLM_CONFIG, "vocab_size": 4096}
    Saved("bin", "").write(tmp_path, {"x": torch.zeros(1)}, config)
    shutil.copy(TOKENIZER.partition(":")[2], tmp_path / "cog-pretrain.model")
    origin = resolve_model(tmp_path, LoadOptions())
    assert find_tokenizer(origin, LoadOptions()).spec.startswith("sentencepiece:")
