"""Checks attention on a CUDA device: `python -m tests.bench.model_gpu`.

It compares the logits of FlexAttention with those of a dense mask, and checks that the
memory-efficient kernel accepts the mask. `trainer.train` itself reports speed and MFU.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.backends.cuda import SDPAParams, can_use_efficient_attention

from tests.bench.table import machine
from trainer.model.attention import additive
from trainer.model.model import GLM
from trainer.model.sizes import SIZES, ModelConfig

LENGTHS = (64, 128, 192, 320, 512, 576, 640)
TARGET_SHARE = 0.18


def main() -> None:
    """Run the checks and print the results, or print why they cannot run."""
    if not torch.cuda.is_available():
        print("skipped: no CUDA device here")
        return
    print(f"{machine()}\n{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"FlexAttention and a dense mask differ by {difference():.1e} in logits of fp32")
    check_kernel()


def small(*, layers: int, dropout: float) -> ModelConfig:
    """Return glm-large with few layers, positions for all lengths, and one dropout rate."""
    rates = {"hidden_dropout": dropout, "attention_dropout": dropout}
    return replace(SIZES["glm-large"], max_positions=max(LENGTHS), num_layers=layers, **rates)


def infilling(config: ModelConfig, size: int, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the tokens, position ids and text ends of random samples with blanks."""
    generator = torch.Generator().manual_seed(length)
    first = int(length * (1 - TARGET_SHARE))
    sep = torch.randint(first - 8, first + 9, (size,), generator=generator)
    places = torch.arange(length)
    tokens = torch.randint(0, config.vocab_size, (size, length), generator=generator)
    position_ids = torch.stack(
        [torch.minimum(places, sep[:, None]), (places - sep[:, None] + 1).clamp(min=0)], dim=1
    )
    return tokens.cuda(), position_ids.cuda(), sep.cuda()


def difference() -> float:
    """Return the largest difference in logits between the two kinds of mask at any length."""
    config = small(layers=4, dropout=0.0)
    torch.manual_seed(0)
    with torch.device("cuda"):
        flex, dense = GLM(config, attention="flex"), GLM(config, attention="sdpa")
    dense.load_state_dict(flex.state_dict())
    largest = 0.0
    for length in LENGTHS:
        tokens, position_ids, sep = infilling(config, 4, length)
        pieces = (torch.arange(length, device="cuda") > length // 3).long().expand(4, -1)
        for isolated in (None, pieces):
            with torch.no_grad():
                one, other = (
                    model(tokens, position_ids, sep=sep, pieces=isolated) for model in (flex, dense)
                )
            largest = max(largest, (one - other).abs().max().item())
    return largest


def check_kernel() -> None:
    """Check that the memory-efficient kernel accepts the mask.

    Raises:
        RuntimeError: The kernel does not accept it.
    """
    config = small(layers=1, dropout=0.1)
    with torch.device("cuda"):
        model = GLM(config, attention="sdpa").bfloat16()
    tokens, _, sep = infilling(config, 4, 576)
    mask = additive(model.mask(tokens, sep, None), torch.bfloat16)
    heads = torch.randn(4, 16, 576, 64, device="cuda", dtype=torch.bfloat16)
    asked = SDPAParams(heads, heads, heads, mask, 0.1, False, False)
    if not can_use_efficient_attention(asked, debug=True):
        raise RuntimeError("the memory-efficient kernel does not accept the mask")


if __name__ == "__main__":
    main()
