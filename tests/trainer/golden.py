"""Figures of the reference implementation (THUDM/GLM 4f61ed7), which was run to make them.

`tests/data/glm_tiny.npz` is a part of `../shared/data/golden/model_tiny.npz`: all weights of a
model of three layers, and of its cases `bert` one sample, of `edges` two (no token in front of
`sep`, and all of them).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig

SHAPE = ModelConfig(
    num_layers=3,
    hidden_size=64,
    num_heads=4,
    vocab_size=256,
    max_positions=64,
    hidden_dropout=0.0,
    attention_dropout=0.0,
)
EXTRACT = Path(__file__).parents[1] / "data" / "glm_tiny.npz"
SHARED = Path(__file__).parents[2] / ".." / "shared" / "data" / "golden"

TOLERANCE = 5e-5
"""Of logits whose standard deviation is 4; an error of formula moves them by 1e-4 and more."""

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the reference's figures are not at ../shared/data/golden"
)


class Figures:
    """A file of figures."""

    def __init__(self, path: Path) -> None:
        self._arrays: Any = np.load(path)
        self.names: list[str] = self._arrays.files

    def tensor(self, name: str) -> Tensor:
        array = self._arrays[name]
        return torch.from_numpy(array.astype(np.int64) if array.dtype == np.int16 else array)

    def weights(self) -> dict[str, Tensor]:
        return self.under("weight/")

    def under(self, folder: str) -> dict[str, Tensor]:
        return {
            name.removeprefix(folder): self.tensor(name)
            for name in self.names
            if name.startswith(folder)
        }

    def batch(self, case: str) -> dict[str, Tensor]:
        """A case as a loader would give it; a full mask is left out."""
        figures = self.under(f"case/{case}/")
        batch = {
            "tokens": figures["text"],
            "targets": figures["target"],
            "loss_mask": figures["loss_mask"].bool(),
            "position_ids": figures["position_id"],
        }
        if figures["attention_mask"].dim() == 1:
            batch["sep"] = figures["attention_mask"]
        return batch


def reference_model(make: Callable[[ModelConfig], GLM] = GLM, **weights: Tensor) -> GLM:
    """The reference's tiny model, its weights given or of the extract."""
    model = make(SHAPE)
    model.load_state_dict(weights or Figures(EXTRACT).weights())
    return model


def logits_of(model: GLM, batch: dict[str, Tensor]) -> Tensor:
    logits: Tensor = model(batch["tokens"], batch["position_ids"], sep=batch["sep"])
    return logits
