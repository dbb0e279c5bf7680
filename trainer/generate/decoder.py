"""Runs a model on prompts and then token by token, with a cache of keys and values.

    row 0   [CLS] A cat [MASK] eos  sop  sat   on
    row 1   [CLS] [MASK] eos        sop  Dogs   .      .      .
                                    ^ lengths[1] = 3 before sop, 5 after Dogs

Each row has any number of tokens. Positions are embedded before the layers, so the slot of a token
in its row is just the number of tokens that were read before it. Slots beyond the length of a row
are masked, and the next tokens overwrite them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shards.errors import UserError
from trainer.generate.prompt import Prompt
from trainer.model.model import CachedInput
from trainer.model.sizes import ModelConfig

Forward = Callable[[CachedInput], Tensor]
"""`GLM.forward`, or an engine around it."""
_STEP = 128
"""Slots are allocated in multiples of this number."""


class InputToken(NamedTuple):
    """A token with its positions, as input of a model."""

    token: int
    position: int
    block_position: int


class CachedDecoder:
    """A model with a cache for each row; the decoder is also the model's `CachedInput`."""

    tokens: Tensor
    """The new tokens, int64[b, n]."""
    position_ids: Tensor
    """The positions of the new tokens, int64[b, 2, n]."""

    def __init__(self, forward: Forward, shape: ModelConfig, device: torch.device) -> None:
        """Make a decoder that has no rows yet."""
        self._forward, self._device = forward, device
        self.positions = shape.position_rows
        """The number of positions of the model."""
        self._clear(0)

    def _clear(self, num_rows: int) -> None:
        self.lengths: NDArray[np.int64] = np.zeros(num_rows, np.int64)
        """The number of tokens of each row that have been read."""
        self._stores: dict[int, Tensor] = {}
        """Keys and values of each layer, [2, b, heads, slots, width]."""

    def prefill(self, prompts: Sequence[Prompt]) -> None:
        """Read the contexts of prompts, one per row; tokens of a GLM's context see each other."""
        self._clear(len(prompts))
        rows = [
            [InputToken(token, position, 0) for position, token in enumerate(prompt.context)]
            for prompt in prompts
        ]
        if any(rows):
            self._forward_rows(rows, sees_ahead=not prompts[0].causal)

    def decode(self, rows: Sequence[Sequence[InputToken]]) -> Tensor:
        """Read one or more tokens per row; return the logits after each row's last, float32[b, V].

        Raises:
            UserError: some logits are NaN or infinite.
        """
        logits = self._forward_rows(rows, sees_ahead=False)
        if not bool(logits.isfinite().all()):
            raise UserError(
                "no text can be generated: the model's logits are NaN or infinite, because its "
                "training diverged, or they overflow in its dtype. Use an earlier checkpoint, "
                "RUN/step-N, or --dtype fp32."
            )
        return logits

    def reorder(self, rows: Sequence[tuple[int, int]]) -> None:
        """Select rows of the cache in a new order; a row may be selected several times.

        Args:
            rows: the number of each selected row, and its length; tokens beyond the length are
                forgotten.
        """
        numbers = [number for number, _ in rows]
        if numbers != list(range(len(self.lengths))):
            index = torch.tensor(numbers, device=self._device)
            self._stores = {n: one.index_select(1, index) for n, one in self._stores.items()}
        self.lengths = np.array([length for _, length in rows], np.int64)

    @torch.no_grad()
    def _forward_rows(self, rows: Sequence[Sequence[InputToken]], *, sees_ahead: bool) -> Tensor:
        self._sizes, self._starts = np.array([len(row) for row in rows]), self.lengths
        self._width, self._sees_ahead = int(self._sizes.max()), sees_ahead
        padding = InputToken(0, 0, 0)
        padded = [[*row, *[padding] * (self._width - len(row))] for row in rows]
        fed = torch.tensor(padded).to(self._device)
        self.tokens, self.position_ids = fed[..., 0], fed[..., 1:].transpose(1, 2)
        self.lengths = self._starts + self._sizes
        self._slot_indices = torch.from_numpy(self._new_slots).to(self._device)
        return self._forward(self).float()

    @property
    def last(self) -> Tensor:
        """The index of each row's last new token, int64[b]; 0 for rows that have no new tokens."""
        return torch.from_numpy(np.maximum(self._sizes - 1, 0))

    @property
    def _new_slots(self) -> NDArray[np.int64]:
        """The slots of the new tokens, including padding, int64[b, n]."""
        return self._starts[:, None] + np.arange(self._width)

    def mask(self, device: torch.device) -> Tensor:
        """Return the slots that the new tokens see, bool, broadcastable to [b, 1, n, slots]."""
        slots = np.arange(int(self._starts.max()) + self._width)
        # Rows that have no tokens see slot 0, because a softmax over no slots gives NaN.
        ahead = slots < np.maximum(self.lengths, 1)[:, None, None, None]
        seen = ahead if self._sees_ahead else slots <= self._new_slots[:, None, :, None]
        return torch.from_numpy(seen).to(device)

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store new keys and values, [b, heads, n, width]; return the keys and values of all slots.

        Slots beyond a row's length always hold finite numbers, because a weight of 0 cancels finite
        numbers, but not NaN.
        """
        new, first = torch.stack([keys, values]), int(self._starts[0])
        extent = int(self._starts.max()) + self._width
        store = self._stores[layer] = _with_room(self._stores.get(layer), new, extent)
        if (self._starts == first).all():
            store[:, :, :, first:extent] = new
        else:
            rows = torch.arange(len(self._slot_indices), device=store.device)[:, None]
            store[:, rows, :, self._slot_indices] = new.permute(1, 3, 0, 2, 4)
        return store[0, :, :, :extent], store[1, :, :, :extent]


def _with_room(store: Tensor | None, like: Tensor, extent: int) -> Tensor:
    """Return a store of keys and values with at least `extent` slots."""
    have = 0 if store is None else store.shape[3]
    if store is not None and have >= extent:
        return store
    size = -(-max(extent, have + have // 2) // _STEP) * _STEP
    grown = like.new_zeros(*like.shape[:3], size, like.shape[4])
    if store is not None:
        grown[:, :, :, :have] = store
    return grown
