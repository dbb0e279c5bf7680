"""The parts of a GLM, with the names that published files have for them.

Initial values come from PyTorch's default generator and are drawn where each leaf is made: under
`deepspeed.zero.Init` parameters are cut apart as soon as their module exists.
"""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trainer.attention import Mask, attend
from trainer.loss import Project
from trainer.sizes import ModelConfig


class Transformer(nn.Module):
    """Positions, the layers, the last LayerNorm."""

    def __init__(self, config: ModelConfig, *, checkpoint_activations: bool) -> None:
        super().__init__()
        self.dropout = config.hidden_dropout
        self.checkpoint_activations = checkpoint_activations
        rows, width = config.position_rows, config.hidden_size
        self.position_embeddings = Embedding(rows, width, std=config.init_std)
        self.block_position_embeddings = (
            Embedding(rows, width, std=config.init_std) if config.block_positions else None
        )
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_layers))
        self.final_layernorm = nn.LayerNorm(width, eps=config.layernorm_eps)

    def forward(self, embedded: Tensor, position_ids: Tensor, mask: Mask) -> Tensor:
        """Return float[b, n, h] of embedded tokens float[b, n, h]."""
        hidden = embedded + self.position_embeddings(position_ids[:, 0])
        if self.block_position_embeddings is not None:
            hidden = hidden + self.block_position_embeddings(position_ids[:, 1])
        hidden = F.dropout(hidden, self.dropout, self.training)
        for layer in self.layers:
            if self.checkpoint_activations and self.training:
                hidden = checkpoint(layer, hidden, mask, use_reentrant=False)
            else:
                hidden = layer(hidden, mask)
        normed: Tensor = self.final_layernorm(hidden)
        return normed


class Layer(nn.Module):
    """Attention, then a perceptron, each on a LayerNorm of what it adds to."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.layernorm_eps
        self.dropout = config.hidden_dropout
        self.input_layernorm = nn.LayerNorm(width, eps=eps)
        self.attention = Attention(config)
        self.post_attention_layernorm = nn.LayerNorm(width, eps=eps)
        self.mlp = Perceptron(config)

    def forward(self, hidden: Tensor, mask: Mask) -> Tensor:
        """Return float[b, n, h]."""
        added = self.attention(self.input_layernorm(hidden), mask)
        hidden = hidden + F.dropout(added, self.dropout, self.training)
        added = self.mlp(self.post_attention_layernorm(hidden))
        return hidden + F.dropout(added, self.dropout, self.training)


class Attention(nn.Module):
    """Attention of many heads; the fused matrix gives all queries, all keys, all values."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, std = config.hidden_size, config.init_std
        self.num_heads = config.num_heads
        self.dropout = config.attention_dropout
        self.query_key_value = Linear(width, 3 * width, std=std)
        self.dense = Linear(width, width, std=_residual_std(config))

    def forward(self, hidden: Tensor, mask: Mask) -> Tensor:
        """Return float[b, n, h]."""
        b, n, h = hidden.shape
        query, key, value = (
            part.view(b, n, self.num_heads, h // self.num_heads).transpose(1, 2)
            for part in self.query_key_value(hidden).chunk(3, dim=-1)
        )
        dropout = self.dropout if self.training else 0.0
        seen = attend(query, key, value, mask=mask, dropout=dropout)
        output: Tensor = self.dense(seen.transpose(1, 2).reshape(b, n, h))
        return output


class Perceptron(nn.Module):
    """Two matrices with GELU, in its tanh form, between them."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.dense_h_to_4h = Linear(width, 4 * width, std=config.init_std)
        self.dense_4h_to_h = Linear(4 * width, width, std=_residual_std(config))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return float[b, n, h]."""
        output: Tensor = self.dense_4h_to_h(F.gelu(self.dense_h_to_4h(hidden), approximate="tanh"))
        return output


def _residual_std(config: ModelConfig) -> float:
    """Return the spread of what is added to the residual stream, twice a layer (GPT-2's rule)."""
    return float(config.init_std / (2 * config.num_layers) ** 0.5)


class Linear(nn.Linear):
    """A linear map with weights drawn from N(0, std²) and biases of 0."""

    def __init__(self, num_inputs: int, num_outputs: int, *, std: float) -> None:
        self.std = std
        super().__init__(num_inputs, num_outputs)

    def reset_parameters(self) -> None:
        """Draw initial values."""
        nn.init.normal_(self.weight, std=self.std)
        nn.init.zeros_(self.bias)


class Embedding(nn.Embedding):
    """A table with rows drawn from N(0, std²)."""

    def __init__(self, num_rows: int, width: int, *, std: float) -> None:
        self.std = std
        super().__init__(num_rows, width)

    def reset_parameters(self) -> None:
        """Draw initial values."""
        nn.init.normal_(self.weight, std=self.std)


Judge = Callable[[Tensor, Project], tuple[Tensor, ...]]
"""Gets hidden states and what makes logits of them, chunk by chunk."""


class TiedEmbedding(Embedding):
    """Token embeddings, and the logits that the same matrix gives.

    All are calls of this module, so that ZeRO stage 3 gathers the matrix for each. A gather takes
    all ranks, so every rank must make as many calls: what makes logits chunk by chunk, as many
    chunks as there are targets, is a `judge`, inside one call.
    """

    def forward(
        self, given: Tensor, *, project: bool = False, judge: Judge | None = None
    ) -> Any:  # a tensor, or the judge's tuple: wider than what nn.Embedding promises
        """Return the rows of tokens int64[…], float[…, h]; or logits, float[…, V], of hidden.

        Args:
            given: tokens; or hidden states, float[…, h], with `project` or `judge`.
            project: give logits.
            judge: gets the hidden states and what projects them; what it gives is returned. A
                plain tuple: DeepSpeed rebuilds what a module returns from one list.
        """
        if judge is not None:
            return tuple(judge(given, lambda rows: F.linear(rows, self.weight)))
        if project:
            return F.linear(given, self.weight)
        return super().forward(given)
