import pytest
import torch

from trainer.metrics import peak_flops
from trainer.model.sizes import SIZES


@pytest.mark.parametrize(
    ("name", "fp16", "bf16"),
    [
        ("NVIDIA A100-SXM4-80GB", 312, 312),
        ("NVIDIA H100 PCIe", 756, 756),
        ("NVIDIA GeForce RTX 4090", 165.2, 165.2),
        # Older devices support only fp16.
        ("Tesla V100-SXM2-32GB", 125, None),
        # For an unknown device, no peak is guessed.
        ("NVIDIA GeForce RTX 4090 D", None, None),
        ("cpu", None, None),
    ],
)
def test_peaks(name: str, fp16: float | None, bf16: float | None) -> None:
    for dtype, tera in {torch.float16: fp16, torch.bfloat16: bf16, torch.float32: None}.items():
        assert peak_flops(name, dtype) == (tera and tera * 1e12)


def test_flops_are_six_a_weight_and_the_products_of_attention() -> None:
    config = SIZES["glm-large"]
    weights, head, attention = 24 * 12 * 1024**2, 30592 * 1024, 12 * 24 * 1024 * 512
    assert config.flops_per_token(512) == 6 * (weights + head) + attention
    assert config.flops_per_token(512, target_share=0.25) == 6 * (weights + head / 4) + attention
