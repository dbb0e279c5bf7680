"""What a model has read, so that it need not be read again: keys and values of every layer.

    row 0   [CLS] A cat [MASK] eos  sop  sat   on
    row 1   [CLS] [MASK] eos        sop  Dogs   .      .      .
                                    ^ lengths[1] = 3 before sop, 5 after Dogs

Rows hold any number of tokens each. Positions are embedded before the layers, so a token's slot in
its row says nothing but how many were read before it. What lies beyond a row's length is never
seen, and the next tokens overwrite it.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Store = tuple[Tensor, Tensor]
"""Keys and values of a layer, [b, heads, slots, width]."""

_STEP = 128
"""Slots are made in multiples of this many."""


class Cache:
    """Keys and values of b rows.

    `begin` gives it new tokens, and `GLM.forward` reads them.
    """

    def __init__(self, *, num_layers: int, num_rows: int) -> None:
        """Hold nothing yet."""
        self.lengths: NDArray[np.int64] = np.zeros(num_rows, np.int64)
        """How many tokens of each row have been read."""
        self._stores: list[Store | None] = [None] * num_layers
        self.tokens = self.position_ids = torch.zeros(0, dtype=torch.int64)
        """New ones, as `begin` was given them."""
        self._starts = self._sizes = self.lengths
        self._width = 0
        self._sees_ahead = False
        self._places: tuple[Tensor, Tensor] | None = None
        """Rows and slots of the new tokens; None: the same slots in all rows."""

    def begin(
        self, tokens: Tensor, position_ids: Tensor, *, sizes: Sequence[int], sees_ahead: bool
    ) -> None:
        """Take new tokens, which `GLM.forward` then reads.

        Args:
            tokens: int64[b, n], on the model's device.
            position_ids: int64[b, 2, n], positions and block positions.
            sizes: how many each row gets; the others of the batch's width are padding.
            sees_ahead: the new tokens of a row see all of each other.
        """
        self.tokens, self.position_ids = tokens, position_ids
        self._starts = self.lengths
        self._sizes = np.asarray(sizes, np.int64)
        self._width = tokens.shape[1]
        self._sees_ahead = sees_ahead
        self.lengths = self._starts + self._sizes
        self._places = None
        if (self._starts != self._starts[0]).any():
            slots = torch.from_numpy(self._starts[:, None] + np.arange(self._width))
            rows = torch.arange(len(slots), device=tokens.device)[:, None]
            self._places = rows, slots.to(tokens.device)

    @property
    def last(self) -> Tensor:
        """The last new token of each row, int64[b]; the first one for rows that get none."""
        return torch.from_numpy(np.maximum(self._sizes - 1, 0))

    def mask(self, device: torch.device) -> Tensor:
        """Return which slots the new tokens see, bool, broadcastable to [b, 1, n, slots]."""
        slots = np.arange(self._extent)
        if self._sees_ahead:
            # Slot 0, for rows without tokens: a softmax over nothing gives NaN.
            seen = slots < np.maximum(self.lengths, 1)[:, None, None, None]
        else:
            own = self._starts[:, None] + np.arange(self._width)
            seen = slots <= own[:, None, :, None]
        return torch.from_numpy(seen).to(device)

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add the new tokens of a layer, [b, heads, n, width], and return those of all slots.

        Every slot beyond a row's length holds numbers, if only zeros: a weight of 0 makes them
        nothing, which it does not do to NaN.
        """
        stores = self._with_room(self._stores[layer], keys)
        self._stores[layer] = stores
        extent, first = self._extent, int(self._starts[0])
        for store, new in zip(stores, (keys, values), strict=True):
            if self._places is None:
                store[:, :, first:extent] = new
            else:
                rows, slots = self._places
                store[rows, :, slots] = new.transpose(1, 2)
        return stores[0][:, :, :extent], stores[1][:, :, :extent]

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows in this order; a row may be kept several times."""
        if list(rows) == list(range(len(self.lengths))):
            return
        chosen = np.asarray(rows, np.int64)
        self.lengths = self.lengths[chosen]
        for layer, stores in enumerate(self._stores):
            if stores is not None:
                index = torch.from_numpy(chosen).to(stores[0].device)
                keys, values = (store.index_select(0, index) for store in stores)
                self._stores[layer] = (keys, values)

    def cut(self, lengths: Sequence[int]) -> None:
        """Forget what each row read after so many tokens."""
        self.lengths = np.asarray(lengths, np.int64)

    @property
    def _extent(self) -> int:
        """How many slots the new tokens reach, padding included."""
        return int(self._starts.max()) + self._width

    def _with_room(self, stores: Store | None, like: Tensor) -> Store:
        """Return stores with a slot for each new token."""
        have = 0 if stores is None else stores[0].shape[2]
        if stores is not None and have >= self._extent:
            return stores
        size = -(-max(self._extent, have + have // 2) // _STEP) * _STEP
        b, heads, _, width = like.shape
        keys, values = (like.new_zeros(b, heads, size, width) for _ in range(2))
        if stores is not None:
            keys[:, :, :have], values[:, :, :have] = stores
        return keys, values
