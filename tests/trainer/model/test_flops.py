import pytest
import torch

from trainer.model.flops import peak_flops


@pytest.mark.parametrize(
    ("name", "tera"),
    [
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA A800 80GB PCIe", 312),
        ("NVIDIA H100 80GB HBM3", 989.4),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA H100 NVL", 835),
        ("NVIDIA H200", 989.4),
        ("NVIDIA GH200 480GB", 989.4),
        ("NVIDIA L4", 121),
        ("NVIDIA L40S", 362),
        ("NVIDIA A10", 125),
        ("NVIDIA GeForce RTX 3090", 71),
        ("NVIDIA GeForce RTX 4090", 165.2),
        ("Ascend910B3", 313),
    ],
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_devices_with_both_half_types(name: str, tera: float, dtype: torch.dtype) -> None:
    assert peak_flops(name, dtype) == tera * 1e12


@pytest.mark.parametrize(
    ("name", "tera"),
    [
        ("Tesla V100-SXM2-32GB", 125),
        ("Tesla V100-PCIE-16GB", 112),
        ("Tesla V100S-PCIE-32GB", 130),
        ("Tesla T4", 65),
        ("Ascend910A", 256),
    ],
)
def test_older_devices_know_fp16_alone(name: str, tera: float) -> None:
    assert peak_flops(name, torch.float16) == tera * 1e12
    assert peak_flops(name, torch.bfloat16) is None


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA A10G",
        "NVIDIA L40",
        "Ascend910B4",
        "AMD Instinct MI300X",
        "cpu",
        "",
    ],
)
def test_what_is_not_known_is_not_guessed(name: str) -> None:
    assert peak_flops(name, torch.bfloat16) is None
    assert peak_flops(name, torch.float16) is None


def test_products_of_single_precision_are_not_compared() -> None:
    assert peak_flops("NVIDIA H100 80GB HBM3", torch.float32) is None
