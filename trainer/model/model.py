"""GLM: a pre-LayerNorm transformer that fills blanks (arXiv:2103.10360).

    model = GLM(ModelConfig.named("glm-large"))
    logits = model(tokens, position_ids, sep=sep)     # [b, n, V]
    sums = model(batch)                               # LossSums of a loader's batch

Layers, names in the state dict, initial values and numerics are those of THUDM/GLM (commit
4f61ed7, model/modeling_glm.py and mpu/transformer.py), so that its published files load and give
the same logits. With a causal mask and no block positions, it is a GPT-2.

Each leaf module draws its initial values from PyTorch's default generator when it is made, because
`deepspeed.zero.Init` partitions parameters as soon as their module exists.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from trainer.model.attention import Mask, additive, attend, flex_runs_on, make_mask
from trainer.model.loss import LossSums, Project, cross_entropy, loss_sums
from trainer.model.sizes import ModelConfig

CHUNK_LOGITS = 2**26
"""The number of logits computed at a time for the loss: 256 MiB in fp32."""
_CHUNK_SHARE = 64
"""A GPU computes more logits at a time if they fill no more than 1/64 of its memory in fp32; an
uncompiled loss takes three times as much memory."""
_KEPT_SHARE = 8
"""A GPU keeps the logits of a micro-batch for the backward pass if they fill no more than 1/8 of
its memory, in the type of the weights if the loss is compiled and in fp32 otherwise; else it
recomputes them. On an H200, a GPT-2 with 124M parameters trains on 469,000 tokens per second if
logits are recomputed, and on 526,000 if they are kept, which takes 5 GiB more."""


Extend = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Takes keys and values of new tokens, [b, heads, n, width], and returns the keys and values of all
tokens."""


class CachedInput(Protocol):
    """New tokens, and the cached keys and values of earlier tokens (`trainer.generate.decoder`)."""

    tokens: Tensor
    """The new tokens, int64[b, n]."""
    position_ids: Tensor
    """The positions of the new tokens, int64[b, 2, n]."""

    @property
    def last(self) -> Tensor:
        """The index of each row's last new token, int64[b]."""

    def mask(self, device: torch.device) -> Tensor:
        """Return the slots that the new tokens see, bool, broadcastable to [b, 1, n, slots]."""

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store a layer's new keys and values; return the keys and values of all tokens."""


class GLM(nn.Module):
    """The model; `forward` returns logits, or the loss of a batch."""

    def __init__(
        self,
        config: ModelConfig,
        *,
        checkpoint_activations: bool = False,
        attention: Literal["auto", "sdpa", "flex"] = "auto",
        smoothing: float = 0.0,
    ) -> None:
        """Make the model with initial values.

        Args:
            config: the shape of the model.
            checkpoint_activations: whether to keep only the input of each layer, and recompute the
                rest in the backward pass.
            attention: the kernel for masks other than a purely causal one. `flex` is FlexAttention,
                which has no attention dropout; `auto` uses it on CUDA if that dropout is 0.
            smoothing: the share of each target that training spreads over the vocabulary.
        """
        super().__init__()
        if attention == "flex" and config.attention_dropout:
            raise ValueError(
                f"FlexAttention has no dropout, and attention_dropout is "
                f"{config.attention_dropout}; set it to 0 or use attention='sdpa'"
            )
        self.config = config
        self.attention: Literal["auto", "sdpa", "flex"] = attention
        self.smoothing = smoothing
        self.cross_entropy = cross_entropy
        self.word_embeddings = TiedEmbedding(
            config.vocab_size, config.hidden_size, std=config.init_std
        )
        self.transformer = Transformer(config, checkpoint_activations=checkpoint_activations)

    def forward(
        self,
        tokens: Tensor | Mapping[str, Tensor] | CachedInput,
        position_ids: Tensor | None = None,
        *,
        sep: Tensor | None = None,
        causal: bool = False,
        pieces: Tensor | None = None,
    ) -> Tensor | LossSums:
        """Return the logits of tokens, float[b, n, V], or the `LossSums` of a batch.

        One method does both because DeepSpeed and DDP wrap only `forward`.

        Args:
            tokens: int64[b, n]; or a batch, which is a mapping with `tokens`, `targets`,
                `loss_mask` and, for blanks, `position_ids` and `sep`. A batch that lacks `sep` is
                causal; `pieces` isolates the batch's documents. If the batch has `words`, int64[b,
                k], the result is the logits of these words after the last token of each row,
                float32[b, k]. It may also be a `CachedInput`, whose cache is extended; the result
                is then the logits after the last new token of each row, float[b, V].
            position_ids: int64[b, 2, n], positions and block positions; None means 0, 1, 2 ….
            sep: int64[b], or one number for all rows: the number of tokens that see each other in
                both directions.
            causal: whether no token sees later tokens; `sep` must then be None.
            pieces: int64[b, n], the document of each token; documents do not see each other.

        Raises:
            ValueError: neither or both of `sep` and `causal` are given.
        """
        if isinstance(tokens, Mapping):
            return self._loss(tokens)
        if not isinstance(tokens, Tensor):
            return self._read(tokens)
        if causal is (sep is not None):
            raise ValueError("say which mask to use: give either sep=… or causal=True")
        mask = self.mask(tokens, sep, pieces)
        hidden = self.hidden_states(tokens, position_ids, mask)
        logits: Tensor = self.word_embeddings(hidden, project=True)
        return logits

    def loss_sum(self, batch: Mapping[str, Tensor]) -> LossSums:
        """Return the `LossSums` of a batch; `forward` does the same, but its type is wider."""
        sums: LossSums = self(batch)
        return sums

    @contextmanager
    def use_attention(self, attention: Literal["auto", "sdpa", "flex"]) -> Iterator[None]:
        """Use a different attention kernel within the block; see `__init__`."""
        former, self.attention = self.attention, attention
        try:
            yield
        finally:
            self.attention = former

    def mask(self, tokens: Tensor, sep: Tensor | None, pieces: Tensor | None) -> Mask:
        """Return the attention mask for tokens int64[b, n] in the form that this model uses."""
        flex = self.attention == "flex" or (
            self.attention == "auto"
            and self.config.attention_dropout == 0
            and flex_runs_on(tokens.device)
        )
        return make_mask(sep, pieces, shape=(tokens.shape[0], tokens.shape[1]), flex=flex)

    def hidden_states(self, tokens: Tensor, position_ids: Tensor | None, mask: Mask) -> Tensor:
        """Return the output of the last LayerNorm, float[b, n, h]."""
        if position_ids is None:
            position_ids = _plain_positions(tokens)
        embedded = self.word_embeddings(tokens)
        # The mask is converted once for all layers: each layer would convert any other form.
        mask = additive(mask, embedded.dtype)
        hidden: Tensor = self.transformer(embedded, position_ids, mask)
        return hidden

    def _read(self, cache: CachedInput) -> Tensor:
        """Extend a cache, and return the logits after each row's last new token, float[b, V]."""
        embedded = self.word_embeddings(cache.tokens)
        mask = additive(cache.mask(embedded.device), embedded.dtype)
        hidden = self.transformer(embedded, cache.position_ids, mask, cache=cache)
        last = hidden[torch.arange(len(hidden), device=hidden.device), cache.last.to(hidden.device)]
        logits: Tensor = self.word_embeddings(last, project=True)
        return logits

    def compile_parts(self) -> None:
        """Compile each layer, and the loss of a chunk of logits.

        The whole model is not compiled, because the number of tokens with loss differs at every
        step. Layers are compiled one by one, because they share their code: compiling
        glm-large-chinese takes 5 s instead of 50 on an H200, and a step is at most 2 % slower.
        """
        for layer in self.transformer.layers:
            layer.compile()
        self.cross_entropy = torch.compile(cross_entropy)

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Return two groups for an optimizer: weights, which decay, and parameters that do not."""
        decaying: list[nn.Parameter] = []
        constant: list[nn.Parameter] = []
        for module in self.modules():
            for name, parameter in module.named_parameters(recurse=False):
                is_constant = name == "bias" or isinstance(module, nn.LayerNorm)
                (constant if is_constant else decaying).append(parameter)
        return [
            {"params": decaying, "weight_decay": weight_decay},
            {"params": constant, "weight_decay": 0.0},
        ]

    def _loss(self, batch: Mapping[str, Tensor]) -> LossSums | Tensor:
        tokens = batch["tokens"]
        mask = self.mask(tokens, batch.get("sep"), batch.get("pieces"))

        smoothing = self.smoothing if self.training else 0.0
        is_compiled = self.cross_entropy is not cross_entropy
        dtype = self.word_embeddings.weight.dtype if is_compiled else torch.float32
        device, width = tokens.device, self.config.vocab_size

        def sums_of(hidden: Tensor, project: Project) -> LossSums:
            return loss_sums(
                hidden,
                project,
                batch,
                chunk=max(1, _logits_made(device) // width),
                kept=_logits_kept(device, dtype) // width,
                token_loss=partial(self.cross_entropy, smoothing=smoothing),
            )

        hidden = self.hidden_states(tokens, batch.get("position_ids"), mask)
        if "words" in batch:
            last = hidden[torch.arange(len(hidden), device=hidden.device), batch["lengths"] - 1]
            logits: Tensor = self.word_embeddings(last, project=True)
            return logits.float().gather(1, batch["words"])
        return LossSums(*self.word_embeddings(hidden, reduce=sums_of))


def _logits_made(device: torch.device) -> int:
    """Return the number of logits to compute at a time."""
    if device.type != "cuda":
        return CHUNK_LOGITS
    return max(CHUNK_LOGITS, _memory(device) // _CHUNK_SHARE // torch.float32.itemsize)


def _logits_kept(device: torch.device, dtype: torch.dtype) -> int:
    """Return the maximum number of logits of a type to keep for the backward pass."""
    return _memory(device) // _KEPT_SHARE // dtype.itemsize if device.type == "cuda" else 0


def _memory(device: torch.device) -> int:
    """Return the bytes of memory of a GPU."""
    return torch.cuda.get_device_properties(device).total_memory


def _plain_positions(tokens: Tensor) -> Tensor:
    """Return positions 0, 1, 2 … for text that has no blanks, int64[b, 2, n]."""
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    return torch.stack([positions, torch.zeros_like(positions)]).expand(len(tokens), 2, -1)


class Transformer(nn.Module):
    """Position embeddings, layers, and the last LayerNorm."""

    def __init__(self, config: ModelConfig, *, checkpoint_activations: bool) -> None:
        super().__init__()
        self.dropout = config.hidden_dropout
        self.has_dropout = config.has_dropout
        self.checkpoint_activations = checkpoint_activations
        rows, width = config.position_rows, config.hidden_size
        self.position_embeddings = Embedding(rows, width, std=config.init_std)
        self.block_position_embeddings = (
            Embedding(rows, width, std=config.init_std) if config.block_positions else None
        )
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_layers))
        self.final_layernorm = nn.LayerNorm(width, eps=config.layernorm_eps)

    def forward(
        self,
        embedded: Tensor,
        position_ids: Tensor,
        mask: Mask,
        *,
        cache: CachedInput | None = None,
    ) -> Tensor:
        """Return hidden states, float[b, n, h], of embedded tokens, float[b, n, h]."""
        hidden = embedded + self.position_embeddings(position_ids[:, 0])
        if self.block_position_embeddings is not None:
            hidden = hidden + self.block_position_embeddings(position_ids[:, 1])
        hidden = F.dropout(hidden, self.dropout, self.training)
        for number, layer in enumerate(self.layers):
            if cache is not None:
                hidden = layer(hidden, mask, extend=partial(cache.extend, number))
            elif self.checkpoint_activations and self.training:
                hidden = checkpoint(
                    layer, hidden, mask, use_reentrant=False, preserve_rng_state=self.has_dropout
                )
            else:
                hidden = layer(hidden, mask)
        normed: Tensor = self.final_layernorm(hidden)
        return normed


class Layer(nn.Module):
    """Attention, then a feed-forward network, each on a LayerNorm of the hidden states."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.layernorm_eps
        self.dropout = config.hidden_dropout
        self.input_layernorm = nn.LayerNorm(width, eps=eps)
        self.attention = Attention(config)
        self.post_attention_layernorm = nn.LayerNorm(width, eps=eps)
        self.mlp = FeedForward(config)

    def forward(self, hidden: Tensor, mask: Mask, *, extend: Extend | None = None) -> Tensor:
        """Return float[b, n, h]; `extend` adds the cached keys and values of earlier tokens."""
        added = self.attention(self.input_layernorm(hidden), mask, extend=extend)
        hidden = hidden + F.dropout(added, self.dropout, self.training)
        added = self.mlp(self.post_attention_layernorm(hidden))
        return hidden + F.dropout(added, self.dropout, self.training)


class Attention(nn.Module):
    """Multi-head attention; the fused matrix returns all queries, then all keys, then values."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, std = config.hidden_size, config.init_std
        self.num_heads = config.num_heads
        self.dropout = config.attention_dropout
        self.query_key_value = Linear(width, 3 * width, std=std)
        self.dense = Linear(width, width, std=_residual_std(config))

    def forward(self, hidden: Tensor, mask: Mask, *, extend: Extend | None = None) -> Tensor:
        """Return float[b, n, h]; `extend` adds the cached keys and values of earlier tokens."""
        b, n, h = hidden.shape
        query, key, value = (
            part.view(b, n, self.num_heads, h // self.num_heads).transpose(1, 2)
            for part in self.query_key_value(hidden).chunk(3, dim=-1)
        )
        if extend is not None:
            key, value = extend(key, value)
        dropout = self.dropout if self.training else 0.0
        seen = attend(query, key, value, mask=mask, dropout=dropout)
        output: Tensor = self.dense(seen.transpose(1, 2).reshape(b, n, h))
        return output


class FeedForward(nn.Module):
    """Two linear maps with GELU (tanh form) between them."""

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
    """Return the std of the two weights per layer that add to the residual stream, as in GPT-2."""
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


Reduce = Callable[[Tensor, Project], tuple[Tensor, ...]]
"""Takes hidden states and a function that computes their logits; returns tensors such as losses."""


class TiedEmbedding(Embedding):
    """Token embeddings, and logits from the same matrix.

    Both are computed in calls of this module, so that ZeRO stage 3 gathers the matrix for each
    call. All ranks take part in a gather, so every rank must make the same number of calls. The
    number of chunks of logits differs by rank, so one `reduce` within one call computes all of
    these chunks.
    """

    vocabulary: int | None = None
    """Only this number of tokens, the first ones, can have a probability; None if all can."""

    def forward(
        self, inputs: Tensor, *, project: bool = False, reduce: Reduce | None = None
    ) -> Any:  # a tensor or a tuple of tensors, which nn.Embedding does not allow for
        """Return embeddings float[…, h] of tokens, or logits float[…, V] of hidden states.

        Args:
            inputs: tokens, int64[…]; with `project` or `reduce`, hidden states, float[…, h].
            project: whether to return logits.
            reduce: a function that is called with the hidden states and the function that projects
                them. Its result is returned as a plain tuple, because DeepSpeed rebuilds outputs of
                modules from a list.
        """
        if reduce is not None:
            return tuple(reduce(inputs, self._projected))
        if project:
            return self._projected(inputs)
        return super().forward(inputs)

    def _projected(self, rows: Tensor) -> Tensor:
        logits = F.linear(rows, self.weight)
        if self.vocabulary is not None:
            logits[..., self.vocabulary :] = torch.finfo(logits.dtype).min
        return logits
