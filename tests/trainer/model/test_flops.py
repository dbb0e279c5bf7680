import pytest
import torch

from trainer.model.flops import peak_flops


@pytest.mark.parametrize(
    ("name", "fp16", "bf16"),
    [
        ("NVIDIA A100-SXM4-80GB", 312, 312),
        ("NVIDIA H100 PCIe", 756, 756),
        ("NVIDIA H100 NVL", 835, 835),
        ("NVIDIA GeForce RTX 4090", 165.2, 165.2),
        # Older ones know fp16 alone.
        ("Tesla V100-SXM2-32GB", 125, None),
        ("Tesla V100S-PCIE-32GB", 130, None),
        # What is not known is not guessed.
        ("NVIDIA GeForce RTX 4090 D", None, None),
        ("NVIDIA GeForce RTX 3090 Ti", None, None),
        ("Ascend910B4", None, None),
        ("cpu", None, None),
    ],
)
def test_peaks(name: str, fp16: float | None, bf16: float | None) -> None:
    for dtype, tera in {torch.float16: fp16, torch.bfloat16: bf16, torch.float32: None}.items():
        assert peak_flops(name, dtype) == (tera and tera * 1e12)
