"""A model that reads prompts, and then tokens one after another, and says what may follow."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from shards.errors import UserError
from trainer.generate.cache import Cache
from trainer.generate.prompt import Prompt
from trainer.model.sizes import ModelConfig

Forward = Callable[[Cache], Tensor]
"""`GLM.forward`, or an engine around it."""


class InputToken(NamedTuple):
    """A token as a model reads it."""

    token: int
    position: int
    block_position: int


class CachedDecoder:
    """A model and what each of its rows has read."""

    def __init__(self, forward: Forward, shape: ModelConfig, device: torch.device) -> None:
        """Hold no rows yet."""
        self._forward = forward
        self._num_layers = shape.num_layers
        self._device = device
        self._cache = Cache(num_layers=shape.num_layers, num_rows=0)
        self.positions = shape.position_rows
        """How many the model has."""

    def open(self, prompts: Sequence[Prompt]) -> None:
        """Read the contexts of prompts, a row for each; a GLM sees all of one at once."""
        self._cache = Cache(num_layers=self._num_layers, num_rows=len(prompts))
        rows = [
            [InputToken(token, position, 0) for position, token in enumerate(prompt.context)]
            for prompt in prompts
        ]
        if any(rows):
            self._read(rows, sees_ahead=not prompts[0].causal)

    def read(self, rows: Sequence[Sequence[InputToken]]) -> Tensor:
        """Read one or more tokens a row, and return the logits of the last, float32[b, V].

        Raises:
            UserError: some of them are NaN or infinite.
        """
        logits = self._read(rows, sees_ahead=False)
        if not bool(logits.isfinite().all()):
            raise UserError(
                "no text can be written: the model's logits are NaN or infinite, because its "
                "training diverged, or they overflow in its dtype. Take an earlier checkpoint, "
                "RUN/step-N, or --dtype fp32."
            )
        return logits

    def keep(self, rows: Sequence[tuple[int, int]]) -> None:
        """Keep rows in this order, some perhaps several times: their numbers, and their lengths.

        What a row has read beyond its length is forgotten.
        """
        self._cache.select([number for number, _ in rows])
        self._cache.cut([length for _, length in rows])

    @torch.no_grad()
    def _read(self, rows: Sequence[Sequence[InputToken]], *, sees_ahead: bool) -> Tensor:
        sizes = [len(row) for row in rows]
        padding = InputToken(0, 0, 0)
        padded = [[*row, *[padding] * (max(sizes) - len(row))] for row in rows]
        fed = torch.tensor(padded).to(self._device)
        self._cache.begin(
            fed[..., 0], fed[..., 1:].transpose(1, 2), sizes=sizes, sees_ahead=sees_ahead
        )
        return self._forward(self._cache).float()
