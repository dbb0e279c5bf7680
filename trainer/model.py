"""GLM: a pre-LayerNorm transformer that fills blanks (arXiv:2103.10360).

    model = GLM(ModelConfig.named("glm-large"))
    logits = model(tokens, position_ids, sep=sep)     # [b, n, V]
    sums = model(batch)                               # LossSums, as a loader's batch has it

Layers, names in the state dict, initial values and numbers are those of THUDM/GLM (commit
4f61ed7, model/modeling_glm.py and mpu/transformer.py), so that its published files load and give
the same logits. Without block positions and with a causal mask it is a GPT-2.
"""

from collections.abc import Mapping
from typing import Any, Literal, overload

import torch
from torch import Tensor, nn

from trainer.attention import Mask, flex_runs_on, make_mask
from trainer.layers import TiedEmbedding, Transformer
from trainer.loss import LossSums, Project, loss_sums
from trainer.sizes import ModelConfig

__all__ = ["GLM", "LossSums", "ModelConfig"]

CHUNK_LOGITS = 2**26
"""Logits made at a time for the loss: 256 MiB in fp32."""


class GLM(nn.Module):
    """The model; `forward` gives logits, or the loss of a batch."""

    def __init__(
        self,
        config: ModelConfig,
        *,
        checkpoint_activations: bool = False,
        attention: Literal["auto", "sdpa", "flex"] = "auto",
    ) -> None:
        """Make the model with initial values.

        Args:
            config: its shape.
            checkpoint_activations: keep only what enters a layer, and compute the rest again in
                the backward pass.
            attention: what computes masks that are not plainly causal. `flex` is FlexAttention,
                which has no attention dropout; `auto` takes it on CUDA where there is none.
        """
        super().__init__()
        if attention == "flex" and config.attention_dropout:
            raise ValueError(
                f"FlexAttention has no dropout, and attention_dropout is "
                f"{config.attention_dropout}; set it to 0 or take attention='sdpa'"
            )
        self.config = config
        self.attention = attention
        self.chunk = max(1, CHUNK_LOGITS // config.vocab_size)
        self.word_embeddings = TiedEmbedding(
            config.vocab_size, config.hidden_size, std=config.init_std
        )
        self.transformer = Transformer(config, checkpoint_activations=checkpoint_activations)

    @overload
    def forward(self, tokens: Mapping[str, Tensor]) -> LossSums: ...

    @overload
    def forward(
        self,
        tokens: Tensor,
        position_ids: Tensor | None = None,
        *,
        sep: Tensor | None = None,
        causal: bool = False,
        pieces: Tensor | None = None,
    ) -> Tensor: ...

    def forward(
        self,
        tokens: Tensor | Mapping[str, Tensor],
        position_ids: Tensor | None = None,
        *,
        sep: Tensor | None = None,
        causal: bool = False,
        pieces: Tensor | None = None,
    ) -> Tensor | LossSums:
        """Return the logits of tokens, float[b, n, V], or the `LossSums` of a batch.

        Both are here because DeepSpeed and DDP know a model by its `forward`. To compile, call
        `model.transformer.compile()`: shapes in the loss follow the data, step by step.

        Args:
            tokens: int64[b, n], or a batch: a mapping with `tokens`, `targets`, `loss_mask`, and
                where it is for blanks `position_ids` and `sep`, else it is causal; `pieces`
                isolates its documents. Other entries are not looked at.
            position_ids: int64[b, 2, n], positions and block positions; None: 0, 1, 2 ….
            sep: int64[b], or one number for all, how many tokens see each other from both sides.
            causal: no token sees what follows it; `sep` is None then.
            pieces: int64[b, n], the document of each token; documents do not see each other.

        Raises:
            ValueError: neither `sep` nor `causal` was given, or both.
        """
        if not isinstance(tokens, Tensor):
            return self._loss(tokens)
        if causal is (sep is not None):
            raise ValueError("a mask is asked for by sep=… or by causal=True, one of the two")
        hidden = self.hidden_states(tokens, position_ids, self.mask(tokens, sep, pieces))
        logits: Tensor = self.word_embeddings(hidden, project=True)
        return logits

    def loss_sum(self, batch: Mapping[str, Tensor]) -> LossSums:
        """Return the sums of a batch, a row a sample, as `forward` does."""
        sums: LossSums = self(batch)
        return sums

    def mask(self, tokens: Tensor, sep: Tensor | None, pieces: Tensor | None) -> Mask:
        """Return the attention mask of tokens int64[b, n], in the form that this model takes."""
        flex = self.attention == "flex" or (
            self.attention == "auto"
            and self.config.attention_dropout == 0
            and flex_runs_on(tokens.device)
        )
        return make_mask(sep, pieces, shape=(tokens.shape[0], tokens.shape[1]), flex=flex)

    def hidden_states(self, tokens: Tensor, position_ids: Tensor | None, mask: Mask) -> Tensor:
        """Return what the last LayerNorm gives, float[b, n, h], under any mask."""
        if position_ids is None:
            position_ids = _plain_positions(tokens)
        hidden: Tensor = self.transformer(self.word_embeddings(tokens), position_ids, mask)
        return hidden

    def parameter_groups(self, weight_decay: float) -> list[dict[str, Any]]:
        """Return an optimizer's groups: biases and LayerNorm do not decay, all else does."""
        groups: list[dict[str, Any]] = [
            {"params": [], "weight_decay": weight_decay},
            {"params": [], "weight_decay": 0.0},
        ]
        for module in self.modules():
            for name, parameter in module.named_parameters(recurse=False):
                still = name == "bias" or isinstance(module, nn.LayerNorm)
                groups[still]["params"].append(parameter)
        return groups

    def _loss(self, batch: Mapping[str, Tensor]) -> LossSums:
        tokens = batch["tokens"]
        mask = self.mask(tokens, batch.get("sep"), batch.get("pieces"))

        def judge(hidden: Tensor, project: Project) -> LossSums:
            return loss_sums(
                hidden,
                project,
                targets=batch["targets"],
                loss_mask=batch["loss_mask"],
                chunk=self.chunk,
            )

        hidden = self.hidden_states(tokens, batch.get("position_ids"), mask)
        return LossSums(*self.word_embeddings(hidden, judge=judge))


def _plain_positions(tokens: Tensor) -> Tensor:
    """Return positions 0, 1, 2 … of text without blanks, int64[b, 2, n]."""
    places = torch.arange(tokens.shape[1], device=tokens.device)
    return torch.stack([places, torch.zeros_like(places)]).expand(len(tokens), 2, -1)
