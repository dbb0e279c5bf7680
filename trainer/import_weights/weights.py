"""The weights of a model wherever they come from, by our names, one parameter at a time."""

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
"""Names that a message lists at most."""


def listed(names: Sequence[str]) -> str:
    """Return the first names of several, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


class WeightPart(Protocol):
    """A tensor that is read on demand; a `torch.Tensor` is one."""

    @property
    def shape(self) -> torch.Size:
        """Of the tensor."""

    def contiguous(self) -> Tensor:
        """Return it, on the CPU."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """The weights of a checkpoint."""

    parts: Mapping[str, Sequence[WeightPart]]
    """By name, by rank of model parallelism."""
    source: Path
    """The file or folder that they come from, for messages."""

    def check(self, shapes: Mapping[str, torch.Size], *, extend_positions: bool = False) -> None:
        """Check that they fit a model.

        Args:
            shapes: of the model's parameters.
            extend_positions: let the model have more positions than the files, whose rows come
                first.

        Raises:
            UserError: names or shapes differ from the model's.
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
        """Return a value on the CPU, in the file's type."""
        return self._joined(name, [part.contiguous() for part in self.parts[name]])

    def copy_into(self, model: GLM, *, extend_positions: bool = False) -> None:
        """Copy all values into a model, in its type, after `check`."""
        named = dict(model.named_parameters())
        shapes = {name: parameter.shape for name, parameter in named.items()}
        self.check(shapes, extend_positions=extend_positions)
        for name, parameter in named.items():
            self.copy_to(name, parameter)

    def copy_to(self, name: str, parameter: Tensor) -> None:
        """Copy a value into a parameter that it fits; rows that the parameter has more stay."""
        value = self.read(name)
        with torch.no_grad():
            parameter[: len(value)].copy_(value)

    def _joined(self, name: str, parts: Sequence[Tensor]) -> Tensor:
        """Return the whole of a parameter that model parallelism split into parts.

        Of a fused matrix each rank has a part of the queries, of the keys and of the values, one
        after the other.
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
        "If the file is one of several model-parallel ones, give the folder that holds all of them;"
        f" if not, {other}."
    )
