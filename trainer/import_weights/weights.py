"""The weights of a checkpoint of any form, by our names, read one parameter at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from shards.errors import DamageError, UserError
from trainer.model.model import GLM

_BY_COLUMN = ("attention.dense.weight", "mlp.dense_4h_to_h.weight")
_BY_ROW = ("word_embeddings.weight", "mlp.dense_h_to_4h.weight", "mlp.dense_h_to_4h.bias")
_FUSED = ("query_key_value.weight", "query_key_value.bias")
_POSITIONS = "position_embeddings.weight"

_SHOWN = 5
"""The maximum number of names in a message."""


def listed(names: Sequence[str]) -> str:
    """Return text with the first names, and the number of further names."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


class WeightPart(Protocol):
    """A tensor that is read on demand; a `torch.Tensor` also has this protocol."""

    @property
    def shape(self) -> torch.Size:
        """The shape of the tensor."""

    def contiguous(self) -> Tensor:
        """Return the tensor on the CPU."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """The weights of a checkpoint."""

    parts: Mapping[str, Sequence[WeightPart]]
    """The parts of each parameter, one per rank of model parallelism, by name."""
    source: Path
    """The file or folder of the weights, for messages."""

    def check(self, shapes: Mapping[str, torch.Size], *, extend_positions: bool = False) -> None:
        """Check that the weights fit a model.

        Args:
            shapes: the shapes of the model's parameters by name.
            extend_positions: whether the model may have more positions than the checkpoint, whose
                rows then come first.

        Raises:
            UserError: names or shapes differ from those of the model.
            DamageError: the parts do not fit together.
        """
        for names, what in (
            (shapes.keys() - self.parts.keys(), "lacks parameters that the model has"),
            (self.parts.keys() - shapes.keys(), "has parameters that the model lacks"),
        ):
            if names:
                raise UserError(
                    f"{self.source} {what}: {listed(sorted(names))}. Copy its files again, or give "
                    "the --model that it was made with: compare layers and block positions."
                )
        for name, shape in shapes.items():
            parts = [torch.empty(part.shape, device="meta") for part in self.parts[name]]
            found = self._joined(name, parts).shape
            is_shorter = len(found) == len(shape) and found[1:] == shape[1:] and found < shape
            is_extended = extend_positions and is_shorter and name.endswith(_POSITIONS)
            if found != shape and not is_extended:
                raise UserError(
                    f"{self.source}: {name} has the shape {tuple(found)}, but the model expects "
                    f"{tuple(shape)}. {_advice(name, found, is_shorter=is_shorter)}"
                )

    def read(self, name: str) -> Tensor:
        """Return a parameter on the CPU, in the type of the file."""
        return self._joined(name, [part.contiguous() for part in self.parts[name]])

    def copy_into(self, model: GLM, *, extend_positions: bool = False) -> None:
        """Check all parameters, and copy them into a model, in the model's type.

        Raises:
            UserError: as for `check`.
            DamageError: as for `check`.
        """
        named = dict(model.named_parameters())
        shapes = {name: parameter.shape for name, parameter in named.items()}
        self.check(shapes, extend_positions=extend_positions)
        for name, parameter in named.items():
            self.copy_to(name, parameter)

    def copy_to(self, name: str, parameter: Tensor) -> None:
        """Copy the stored value of a parameter into its first rows; further rows stay unchanged."""
        value = self.read(name)
        with torch.no_grad():
            parameter[: len(value)].copy_(value)

    def _joined(self, name: str, parts: Sequence[Tensor]) -> Tensor:
        """Return a parameter, joined from the parts into which model parallelism split it.

        Each rank's part of a fused matrix contains a part of the queries, then of the keys, then of
        the values.

        Raises:
            DamageError: the parts have different shapes.
        """
        if len({part.shape for part in parts}) > 1:
            shapes = ", ".join(str(tuple(part.shape)) for part in parts)
            raise DamageError(
                f"the files in {self.source} do not belong to one checkpoint: {name} has the "
                f"shapes {shapes}."
            )
        if len(parts) == 1 or not name.endswith((*_BY_COLUMN, *_BY_ROW, *_FUSED)):
            return parts[0]
        if name.endswith(_FUSED):
            thirds = zip(*(part.chunk(3) for part in parts), strict=True)
            return torch.cat([torch.cat(third) for third in thirds])
        return torch.cat(list(parts), dim=1 if name.endswith(_BY_COLUMN) else 0)


def _advice(name: str, found: torch.Size, *, is_shorter: bool) -> str:
    if found and name.endswith(_POSITIONS):
        own = f"a model with max_positions {found[0] - 1}."
        return f"Give --extend-positions, or use {own}" if is_shorter else f"Use {own}"
    other = "it was made with another --model"
    if found and name == "word_embeddings.weight":
        other = f"use a model with vocab_size {found[0]}, and the tokenizer of the file"
    return (
        "If the file is one of several model-parallel ones, give the folder that contains all of "
        f"them; if not, {other}."
    )
