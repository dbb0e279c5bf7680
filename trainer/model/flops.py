"""The peak FLOP/s of devices: the denominator of model FLOPs utilisation (MFU)."""

import re

import torch

_HALF = (torch.float16, torch.bfloat16)
_FP16 = (torch.float16,)

# TFLOP/s of dense matrix products accumulated in fp32, from the manufacturer's data sheet (without
# sparsity). The first pattern that matches the device's name counts.
_PEAKS: tuple[tuple[str, float, tuple[torch.dtype, ...]], ...] = (
    (r"\bB200\b", 2250, _HALF),  # NVIDIA Blackwell architecture brief
    (r"\bGH200\b|\bH200\b", 989.4, _HALF),  # NVIDIA H200 data sheet
    (r"\bH100 PCIe\b", 756, _HALF),  # NVIDIA H100 data sheet, its three forms
    (r"\bH100 NVL\b", 835, _HALF),
    (r"\bH[18]00\b", 989.4, _HALF),
    (r"\bA[18]00\b", 312, _HALF),  # NVIDIA A100 data sheet
    (r"\bL40S\b", 362, _HALF),  # NVIDIA L40S data sheet
    (r"\bL4\b", 121, _HALF),  # NVIDIA L4 data sheet
    (r"\bA40\b", 149.7, _HALF),  # NVIDIA A40 data sheet
    (r"\bA10\b", 125, _HALF),  # NVIDIA A10 data sheet
    (r"\bV100-PCIE\b", 112, _FP16),  # NVIDIA V100 data sheet
    (r"\bV100S\b", 130, _FP16),
    (r"\bV100\b", 125, _FP16),
    (r"\bT4\b", 65, _FP16),  # NVIDIA T4 data sheet
    (r"\bRTX 3090(?! Ti)\b", 71, _HALF),  # NVIDIA GA102 whitepaper, appendix A
    (r"\bRTX 4090(?! (D|Laptop))\b", 165.2, _HALF),  # NVIDIA Ada whitepaper, appendix A
    (r"Ascend910B2$", 376, _HALF),  # eight in an Atlas 800T A2: 3.0 PFLOP/s, or
    (r"Ascend910B3$", 313, _HALF),  # 2.5 PFLOP/s with these
    (r"Ascend910(A|Pro[AB])?$", 256, _FP16),  # Huawei at Hot Chips 31
)


def peak_flops(device_name: str, dtype: torch.dtype) -> float | None:
    """Return the FLOP/s that a device's manufacturer states, None for unlisted devices.

    Args:
        device_name: as `torch.cuda.get_device_name()` or its counterpart returns it.
        dtype: of the factors. The result is also None for types that the device has no matrix unit
            for, and for fp32, whose products may or may not use TF32.
    """
    for pattern, tera, dtypes in _PEAKS:
        if re.search(pattern, device_name):
            return tera * 1e12 if dtype in dtypes else None
    return None
