import math

import pytest

from trainer.model.sizes import SIZES, ModelConfig


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


def test_flops_are_six_a_weight_and_the_products_of_attention() -> None:
    config = SIZES["glm-large"]
    weights = 24 * 12 * 1024**2
    head = 30592 * 1024
    attention = 12 * 24 * 1024 * 512
    assert config.flops_per_token(512) == 6 * (weights + head) + attention
    assert config.flops_per_token(512, target_share=0.25) == 6 * (weights + head / 4) + attention
    # 6 N is most of it, whatever N counts.
    assert math.isclose(config.flops_per_token(512), 6 * config.num_parameters(), rel_tol=0.1)
