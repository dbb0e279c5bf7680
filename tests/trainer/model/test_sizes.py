import json
import math
from pathlib import Path

import pytest

from trainer.model.sizes import SIZES, ModelConfig, padded_vocabulary

SMALL = {
    "num_layers": 2,
    "hidden_size": 64,
    "num_heads": 4,
    "vocab_size": 256,
    "max_positions": 32,
}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("glm-base", 109_338_624),  # counted by the reference itself
        ("glm-large", 334_688_256),
        ("glm-large-chinese", 355_659_776),
        ("glm-2b", 1_920_122_880),
        ("glm-10b", 9_880_682_496),  # and these two by its formula
        ("glm-10b-chinese", 9_879_633_920),
        ("gpt2-d12", 124_475_904),  # llm.c prints it at start
    ],
)
def test_sizes_have_as_many_parameters_as_the_original(name: str, number: int) -> None:
    assert ModelConfig.named(name).num_parameters() == number


@pytest.mark.parametrize(
    ("num_tokens", "rows"),
    [(1, 128), (128, 128), (129, 256), (30524, 30592), (50266, 50304), (50011, 50048)],
)
def test_a_vocabulary_is_padded_to_a_multiple(num_tokens: int, rows: int) -> None:
    assert padded_vocabulary(num_tokens) == rows
    assert ModelConfig.named("tiny").with_vocabulary(num_tokens).vocab_size == rows


def test_a_file_describes_a_model(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**SMALL, "hidden_dropout": 0}))
    config = ModelConfig.named(str(path))
    assert config == ModelConfig(**SMALL, hidden_dropout=0.0)
    assert config.attention_dropout == 0.1


def test_flops_are_six_a_weight_and_the_products_of_attention() -> None:
    config = SIZES["glm-large"]
    weights = 24 * 12 * 1024**2
    head = 30592 * 1024
    attention = 12 * 24 * 1024 * 512
    assert config.flops_per_token(512) == 6 * (weights + head) + attention
    assert config.flops_per_token(512, target_share=0.25) == 6 * (weights + head / 4) + attention
    # 6 N is most of it, whatever N counts.
    assert math.isclose(config.flops_per_token(512), 6 * config.num_parameters(), rel_tol=0.1)
