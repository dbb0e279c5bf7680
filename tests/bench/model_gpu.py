"""The speed of the model on a CUDA device: `python -m tests.bench.model_gpu [--model NAME] …`.

A training step is forward, backward and fused AdamW on bf16 weights, without DeepSpeed and a
loader. The samples are random tokens in the form of blank infilling: 82 % text with blanks, 18 %
targets. MFU counts the operations of `ModelConfig.flops_per_token`, without padding and
recomputation. Before, the logits with FlexAttention are compared with those with a dense mask, and
the memory-efficient kernel must accept the mask.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.backends.cuda import SDPAParams, can_use_efficient_attention

from tests.bench.table import machine, render
from trainer.metrics import peak_flops
from trainer.model.attention import additive
from trainer.model.model import GLM
from trainer.model.sizes import SIZES, ModelConfig

WARM_UP, STEPS = 5, 20
TARGET_SHARE = 0.18
# Batch size and length: texts of 512 and 1,024 tokens with blanks, padded to a multiple of 64.
SHAPES = {"glm-large": (32, 576), "glm-2b": (8, 1152)}
HEAD = ("model", "mask", "dropout", "compiled", "batch", "length", "tokens/s", "MFU", "memory")


def main() -> None:
    """Measure and print, or print why not."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.model_gpu", description=__doc__)
    parser.add_argument("--model", action="append", choices=tuple(SHAPES))
    parser.add_argument("--batch", type=int, help="samples per step")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: no CUDA device here")
        return
    print(f"{machine()}\n{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"FlexAttention and a dense mask differ by {difference():.1e} in logits of fp32")
    check_kernel()
    for name in arguments.model or SHAPES:
        size, length = SHAPES[name]
        for compiled in (False, True):
            print(render(HEAD, rows(name, arguments.batch or size, length, compiled)), flush=True)


def rows(name: str, size: int, length: int, compiled: bool) -> list[Sequence[str]]:
    """Return a row for each way to compute a model."""
    return [
        (name, mask, f"{rate:g}", "yes" if compiled else "no", str(size), str(length), *figures)
        for mask, rate in (("flex", 0.0), ("sdpa", 0.0), ("sdpa", 0.1))
        for figures in [measure(with_dropout(name, length, rate), size, length, mask, compiled)]
    ]


def with_dropout(name: str, length: int, rate: float) -> ModelConfig:
    """Return a named size with positions for the length, and one rate of dropout."""
    return replace(SIZES[name], max_positions=length, hidden_dropout=rate, attention_dropout=rate)


def measure(
    config: ModelConfig, size: int, length: int, mask: str, compiled: bool
) -> tuple[str, str, str]:
    """Return the tokens per second, MFU and peak memory of training."""
    torch.manual_seed(0)
    torch.cuda.reset_peak_memory_stats()
    with torch.device("cuda"):
        model = GLM(config, attention="flex" if mask == "flex" else "sdpa").bfloat16()
    if compiled:
        model.compile_parts()
    optimizer = torch.optim.AdamW(model.parameter_groups(0.1), lr=1e-4, fused=True)
    batches = [infilling(config, size, length, seed=seed) for seed in range(4)]
    for step in range(WARM_UP + STEPS):
        if step == WARM_UP:
            torch.cuda.synchronize()
            start = time.perf_counter()
        sums = model.loss_sum(batches[step % len(batches)])
        (sums.loss.sum() / sums.num_targets.sum()).backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    tokens_per_second = STEPS * size * length / (time.perf_counter() - start)
    return (
        f"{tokens_per_second:,.0f}",
        utilisation(config, length, tokens_per_second),
        f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB",
    )


def utilisation(config: ModelConfig, length: int, tokens_per_second: float) -> str:
    """Return the share of the device's peak, if that is known."""
    peak = peak_flops(torch.cuda.get_device_name(), torch.bfloat16)
    if peak is None:
        return "-"
    flops = config.flops_per_token(length, target_share=TARGET_SHARE)
    return f"{flops * tokens_per_second / peak:.1%}"


def infilling(config: ModelConfig, size: int, length: int, *, seed: int) -> dict[str, Tensor]:
    """Return a batch of random tokens in the form of blank infilling, on the device."""
    generator = torch.Generator().manual_seed(seed)
    first = int(length * (1 - TARGET_SHARE))
    sep = torch.randint(first - 8, first + 9, (size,), generator=generator)
    places = torch.arange(length)
    after = places >= sep[:, None]
    tokens = torch.randint(0, config.vocab_size, (size, length), generator=generator)
    position_ids = torch.stack(
        [torch.minimum(places, sep[:, None]), (places - sep[:, None] + 1).clamp(min=0)], dim=1
    )
    batch = {
        "tokens": tokens,
        "targets": tokens.roll(-1, 1),
        "loss_mask": after,
        "position_ids": position_ids,
        "sep": sep,
    }
    return {name: tensor.cuda() for name, tensor in batch.items()}


def difference() -> float:
    """Return the largest difference of logits between the two kinds of mask, over all lengths."""
    config = replace(with_dropout("glm-large", 640, 0.0), num_layers=4)
    torch.manual_seed(0)
    with torch.device("cuda"):
        flex, dense = GLM(config, attention="flex"), GLM(config, attention="sdpa")
    dense.load_state_dict(flex.state_dict())
    largest = 0.0
    for length in (64, 128, 192, 320, 512, 576, 640):
        batch = infilling(config, 4, length, seed=length)
        pieces = (torch.arange(length, device="cuda") > length // 3).long().expand(4, -1)
        for isolated in (None, pieces):
            with torch.no_grad():
                logits = [
                    model(batch["tokens"], batch["position_ids"], sep=batch["sep"], pieces=isolated)
                    for model in (flex, dense)
                ]
            largest = max(largest, (logits[0] - logits[1]).abs().max().item())
    return largest


def check_kernel() -> None:
    """Check that the memory-efficient kernel accepts the mask.

    Raises:
        RuntimeError: It does not.
    """
    config = replace(with_dropout("glm-large", 576, 0.1), num_layers=1)
    with torch.device("cuda"):
        model = GLM(config, attention="sdpa").bfloat16()
    batch = infilling(config, 4, 576, seed=0)
    mask = additive(model.mask(batch["tokens"], batch["sep"], None), torch.bfloat16)
    heads = torch.randn(4, 16, 576, 64, device="cuda", dtype=torch.bfloat16)
    arguments = SDPAParams(heads, heads, heads, mask, 0.1, False, False)
    if not can_use_efficient_attention(arguments, debug=True):
        raise RuntimeError("the memory-efficient kernel does not take the mask")


if __name__ == "__main__":
    main()
