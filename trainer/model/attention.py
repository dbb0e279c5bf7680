"""Attention under a GLM's mask, which decides which tokens see which.

Tokens before `sep` all see each other; each later token sees the tokens up to itself. For length 6
and sep 3, with one row per query:

    0  x x x . . .
    1  x x x . . .
    2  x x x . . .
    3  x x x x . .
    4  x x x x x .
    5  x x x x x x

Every token sees itself, including padding, so no row is empty. The rule is a function of positions,
from which both forms of a mask are made: a dense tensor for PyTorch's scaled_dot_product_attention,
and blocks for FlexAttention, which skips empty blocks.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

Mask = Tensor | BlockMask | None
"""A tensor broadcastable to [batch, heads, queries, keys], or blocks; None is causal. A bool tensor
is True where a query sees a key; a float tensor is added to the scores."""

_FLEX_CAPABILITY = (8, 0)
"""The capability of Ampere; Triton no longer supports Volta, and Turing has no bf16."""

MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def make_mask(
    sep: Tensor | None, pieces: Tensor | None, *, shape: tuple[int, int], flex: bool
) -> Mask:
    """Return the mask of a batch; None, which is causal, if neither `sep` nor `pieces` is given.

    Args:
        sep: the number of tokens that all see each other: int64[b], or one element for all samples;
            None means 0.
        pieces: int64[b, n], the document of each token; tokens of different documents do not see
            each other. If `pieces` is None, they do.
        shape: b and n.
        flex: whether to make blocks for FlexAttention.
    """
    if sep is None and pieces is None:
        return None
    num_samples, length = shape
    if sep is not None:
        sep = sep.reshape(-1).expand(num_samples)
    sees = mask_mod(sep, pieces)
    device = sep.device if sep is not None else pieces.device if pieces is not None else None
    if flex:
        return create_block_mask(sees, num_samples, None, length, length, device=str(device))
    positions = torch.arange(length, device=device)
    samples = torch.arange(num_samples, device=device).view(-1, 1, 1, 1)
    return sees(samples, samples, positions[:, None], positions)


def mask_mod(sep: Tensor | None, pieces: Tensor | None) -> MaskMod:
    """Return the rule, a function from tensors of indices (sample, head, query, key) to bool."""

    def sees(sample: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        seen = key <= query
        if sep is not None:
            seen = seen | (key < sep[sample])
        if pieces is not None:
            seen = seen & (pieces[sample, query] == pieces[sample, key])
        return seen

    return sees


def additive(mask: Mask, dtype: torch.dtype) -> Mask:
    """Return a mask in the form that fused attention reads: 0 or -inf, in the type of the queries.

    PyTorch would convert a bool mask to this form in every layer. Fused attention reads rows in
    place if their length is a multiple of 8, and copies all other rows.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(~mask, float("-inf"))


def attend(
    query: Tensor, key: Tensor, value: Tensor, *, mask: Mask, dropout: float = 0.0
) -> Tensor:
    """Return the attention of [batch, heads, n, width] under a mask, scaled by 1 / √width.

    FlexAttention has no dropout (`GLM` refuses it).
    """
    if isinstance(mask, BlockMask):
        # Uncompiled FlexAttention makes the full matrix of scores, which is fine for a test on the
        # CPU. In a compiled layer it is compiled with the layer.
        alone = query.is_cuda and not torch.compiler.is_compiling()
        flex: Any = _compiled_flex() if alone else flex_attention
        output: Tensor = flex(query, key, value, block_mask=mask)
        return output
    return scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=mask is None
    )


def flex_runs_on(device: torch.device) -> bool:
    """Return whether FlexAttention is worth using, which it is on Ampere and later CUDA GPUs."""
    if device.type != "cuda" or torch.version.cuda is None:
        return False
    return torch.cuda.get_device_capability(device) >= _FLEX_CAPABILITY


@cache
def _compiled_flex() -> Callable[..., Tensor]:
    compiled: Callable[..., Tensor] = torch.compile(flex_attention)
    return compiled
